/**
 * Files that are there as a whole or not at all, also after the power went.
 */
import type { PlatformError } from "@effect/platform/Error"
import type { FileSystem } from "@effect/platform/FileSystem"
import type { Path } from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import type * as Option from "effect/Option"
import * as Random from "effect/Random"

export interface DurableFiles {
  readonly read: (file: string) => Effect.Effect<Option.Option<string>, PlatformError>
  /** Makes a file unless it exists, and tells whether it did. Of two at once only one does. */
  readonly create: (file: string, text: string) => Effect.Effect<boolean, PlatformError>
  readonly replace: (file: string, text: string) => Effect.Effect<void, PlatformError>
  readonly makeDirectory: (directory: string) => Effect.Effect<void, PlatformError>
  readonly list: (directory: string) => Effect.Effect<ReadonlyArray<string>, PlatformError>
  /** What a process that died while it wrote has left. */
  readonly isLeftover: (name: string) => boolean
  readonly remove: (directory: string, files: ReadonlyArray<string>) => Effect.Effect<void, PlatformError>
}

const isSystem = (reason: string) => (error: PlatformError): boolean =>
  error._tag === "SystemError" && error.reason === reason

const isMissing = isSystem("NotFound")
const isThere = isSystem("AlreadyExists")

const bytes = new TextEncoder()

export const durable = Effect.fnUntraced(function*(fs: FileSystem, path: Path) {
  // Two processes must not write to the same temporary file.
  const writer = (yield* Random.nextIntBetween(0, Number.MAX_SAFE_INTEGER)).toString(36)
  let written = 0

  // Not every system lets a directory be opened; there the order of its changes is up to the system.
  const syncDirectory = (directory: string): Effect.Effect<void> =>
    Effect.ignore(Effect.scoped(Effect.flatMap(fs.open(directory, { flag: "r" }), (handle) => handle.sync)))

  const write = (file: string, text: string): Effect.Effect<void, PlatformError> =>
    Effect.scoped(
      Effect.flatMap(
        fs.open(file, { flag: "w" }),
        (handle) => Effect.zipRight(handle.writeAll(bytes.encode(text)), handle.sync)
      )
    )

  /** Writes a text in full beside its place, and lets `place` put it there. */
  const through = <A>(
    file: string,
    text: string,
    place: (temporary: string) => Effect.Effect<A, PlatformError>
  ): Effect.Effect<A, PlatformError> =>
    Effect.suspend(() => {
      written++
      const temporary = `${file}.${writer}-${written}.tmp`
      return Effect.zipRight(write(temporary, text), place(temporary)).pipe(
        Effect.onError(() => Effect.ignore(fs.remove(temporary))),
        Effect.zipLeft(syncDirectory(path.dirname(file)))
      )
    })

  const rename = (file: string) => (temporary: string) => fs.rename(temporary, file)

  // A link fails where a file is; a rename would replace it.
  const link = (file: string) => (temporary: string): Effect.Effect<boolean, PlatformError> =>
    fs.link(temporary, file).pipe(
      Effect.zipRight(Effect.ignore(fs.remove(temporary))),
      Effect.as(true),
      Effect.catchAll((error) => isThere(error) ? Effect.succeed(false) : withoutLinks(file, temporary)),
      Effect.tap((isOurs) => isOurs ? Effect.void : Effect.ignore(fs.remove(temporary)))
    )

  const withoutLinks = (file: string, temporary: string): Effect.Effect<boolean, PlatformError> =>
    Effect.flatMap(
      fs.exists(file),
      (exists) => exists ? Effect.succeed(false) : Effect.as(fs.rename(temporary, file), true)
    )

  const makeDirectory = (directory: string): Effect.Effect<void, PlatformError> =>
    Effect.zipRight(fs.makeDirectory(directory, { recursive: true }), syncDirectory(path.dirname(directory)))

  const files: DurableFiles = {
    read: (file) => Effect.catchIf(Effect.asSome(fs.readFileString(file)), isMissing, () => Effect.succeedNone),
    create: (file, text) => {
      const created = through(file, text, link(file))
      // Made at the first call of a session, not looked for at every other.
      return Effect.catchIf(created, isMissing, () => Effect.zipRight(makeDirectory(path.dirname(file)), created))
    },
    replace: (file, text) => through(file, text, rename(file)),
    makeDirectory,
    list: (directory) => Effect.catchIf(fs.readDirectory(directory), isMissing, () => Effect.succeed([])),
    isLeftover: (name) => name.endsWith(".tmp") && !name.includes(`.${writer}-`),
    remove: (directory, gone) =>
      gone.length === 0 ? Effect.void : Effect.zipRight(
        Effect.forEach(gone, (file) => Effect.catchIf(fs.remove(file), isMissing, () => Effect.void), {
          discard: true
        }),
        syncDirectory(directory)
      )
  }
  return files
})
