/**
 * Files below a directory, and nothing else: neither an absolute path, nor `..`, nor a link leads out of it.
 */
import type { PlatformError } from "@effect/platform/Error"
import * as FileSystem from "@effect/platform/FileSystem"
import * as Path from "@effect/platform/Path"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Schema from "effect/Schema"
import { nearest } from "../nearest.ts"

/** A path that is not read or written, in words for the model. `nearest` are names it may have meant. */
export class FileRefused extends Schema.TaggedError<FileRefused>("@allm/cli/demo/FileRefused")("FileRefused", {
  path: Schema.String,
  reason: Schema.Literal(
    "outside",
    "not_found",
    "exists",
    "wrong_kind",
    "too_large",
    "binary",
    "invalid",
    "unavailable"
  ),
  detail: Schema.String,
  nearest: Schema.optionalWith(Schema.Array(Schema.String), { exact: true })
}) {
  override get message(): string {
    return `${JSON.stringify(this.path)}: ${this.detail}`
  }
}

const refuse = (
  path: string,
  reason: FileRefused["reason"],
  detail: string,
  nearest: ReadonlyArray<string> = []
): FileRefused => new FileRefused({ path, reason, detail, ...(nearest.length === 0 ? {} : { nearest }) })

/** The most that is read of a file, in bytes. */
export const largest = 64 * 1024

const mostEntries = 200

export interface Entry {
  readonly name: string
  readonly kind: "file" | "directory" | "link" | "other"
  readonly bytes?: number
}

export interface Files {
  /** The names below the root, those of directories and links marked as such. */
  readonly list: (path: string) => Effect.Effect<
    { readonly entries: ReadonlyArray<Entry>; readonly more: number },
    FileRefused
  >
  readonly read: (path: string) => Effect.Effect<string, FileRefused>
  /** Writes a file that is not there yet. What is there is never replaced. */
  readonly create: (path: string, text: string) => Effect.Effect<number, FileRefused>
}

const failed = (path: string) => (error: PlatformError): FileRefused => {
  const reason = error._tag === "SystemError" ? error.reason : "Unknown"
  if (reason === "NotFound") return refuse(path, "not_found", "there is no such file")
  if (reason === "AlreadyExists") return refuse(path, "exists", "it is there already, and is not replaced")
  return refuse(
    path,
    "unavailable",
    reason === "PermissionDenied" ? "it may not be opened" : "the file system refused it"
  )
}

/** Opens the directory. It is looked at anew by every call, so it may also come later. */
export const make = (
  root: string
): Effect.Effect<Files, never, FileSystem.FileSystem | Path.Path> =>
  Effect.gen(function*() {
    const fs = yield* FileSystem.FileSystem
    const paths = yield* Path.Path

    const isBelow = (directory: string, path: string): boolean => {
      const way = paths.relative(directory, path)
      return way !== ".." && !way.startsWith(`..${paths.sep}`) && !paths.isAbsolute(way)
    }

    const outside = (path: string): FileRefused =>
      refuse(path, "outside", "it is not below the directory that may be used; write a path relative to it")

    /** Where a path leads by its words alone. */
    const named = (path: string): Either.Either<string, FileRefused> => {
      if (path.includes("\0")) {
        return Either.left(refuse(path.replaceAll("\0", "␀"), "invalid", "a path has no null bytes"))
      }
      if (paths.isAbsolute(path) || /^([a-z]:|\\)/i.test(path)) return Either.left(outside(path))
      const resolved = paths.resolve(root, path.trim() === "" ? "." : path)
      return isBelow(paths.resolve(root), resolved) ? Either.right(resolved) : Either.left(outside(path))
    }

    /** Where it leads when links are followed: the only path that is opened. */
    const real = Effect.fnUntraced(function*(path: string, target: string) {
      const directory = yield* Effect.mapError(fs.realPath(root), failed(path))
      const found = yield* Effect.mapError(fs.realPath(target), failed(path))
      return isBelow(directory, found) ? found : yield* outside(path)
    })

    const inside = Effect.fnUntraced(function*(path: string) {
      return yield* real(path, yield* named(path))
    })

    /** Names the files it may have meant. */
    const suggested = (refused: FileRefused): Effect.Effect<never, FileRefused> =>
      refused.reason !== "not_found" ? refused : Effect.gen(function*() {
        const parent = paths.dirname(refused.path)
        const names = yield* fs.readDirectory(yield* inside(parent)).pipe(Effect.orElseSucceed(() => []))
        const near = nearest(paths.basename(refused.path), names).map((name) => paths.join(parent, name))
        return yield* refuse(refused.path, refused.reason, refused.detail, near)
      })

    const entry = Effect.fnUntraced(function*(directory: string, name: string) {
      const path = paths.join(directory, name)
      const isLink = yield* Effect.isSuccess(fs.readLink(path))
      if (isLink) return { name, kind: "link" } satisfies Entry
      return yield* Effect.match(fs.stat(path), {
        onFailure: (): Entry => ({ name, kind: "other" }),
        onSuccess: (info): Entry =>
          info.type === "Directory"
            ? { name, kind: "directory" }
            : info.type === "File"
            ? { name, kind: "file", bytes: Number(info.size) }
            : { name, kind: "other" }
      })
    })

    const list = Effect.fnUntraced(function*(path: string) {
      const directory = yield* inside(path)
      const { type } = yield* Effect.mapError(fs.stat(directory), failed(path))
      if (type !== "Directory") return yield* refuse(path, "wrong_kind", "it is no directory; read_file reads files")
      const names = (yield* Effect.mapError(fs.readDirectory(directory), failed(path))).sort()
      const entries = yield* Effect.forEach(names.slice(0, mostEntries), (name) => entry(directory, name), {
        concurrency: 8
      })
      return { entries, more: Math.max(0, names.length - mostEntries) }
    })

    const read = Effect.fnUntraced(function*(path: string) {
      const file = yield* inside(path)
      const info = yield* Effect.mapError(fs.stat(file), failed(path))
      if (info.type === "Directory") return yield* refuse(path, "wrong_kind", "it is a directory; list_files lists it")
      // A pipe or a device would never end.
      if (info.type !== "File") return yield* refuse(path, "wrong_kind", "it is no file")
      if (info.size > largest) {
        return yield* refuse(path, "too_large", `it has ${info.size} bytes; at most ${largest} are read`)
      }
      const bytes = yield* Effect.mapError(fs.readFile(file), failed(path))
      return yield* textOf(path, bytes)
    })

    const create = Effect.fnUntraced(function*(path: string, text: string) {
      const target = yield* named(path)
      const name = paths.basename(target)
      if (target === paths.resolve(root)) return yield* refuse(path, "invalid", "it has no name")
      const directory = yield* real(path, paths.dirname(target))
      // Never opens what is there, be it a file or a link to one.
      const options = { flag: "wx" } as const
      yield* Effect.mapError(fs.writeFileString(paths.join(directory, name), text, options), failed(path))
      return new TextEncoder().encode(text).length
    })

    return {
      list: (path) => Effect.catchAll(list(path), suggested),
      read: (path) => Effect.catchAll(read(path), suggested),
      create
    }
  })

const textOf = (path: string, bytes: Uint8Array): Either.Either<string, FileRefused> =>
  Either.filterOrLeft(
    Either.try({
      try: () => new TextDecoder("utf-8", { fatal: true }).decode(bytes),
      catch: () => refuse(path, "binary", "it is no text")
    }),
    (text) => !text.includes("\0"),
    () => refuse(path, "binary", "it is no text")
  )
