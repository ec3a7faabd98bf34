import { existsSync, readdirSync, readFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"

/** Recorded traffic lies next to the repository, and not everywhere. */
const folder = fileURLToPath(new URL("../../../../shared/fixtures/", import.meta.url))

export const hasRecordings = existsSync(folder)

export const without = hasRecordings ? "" : ` (skipped: there are no recordings in ${folder})`

export const read = (...path: ReadonlyArray<string>): string => readFileSync(join(folder, ...path), "utf8")

/** The names of the recordings in a folder. */
export const namesIn = (...path: ReadonlyArray<string>): ReadonlyArray<string> =>
  hasRecordings ? readdirSync(join(folder, ...path)) : []

export interface Interaction {
  readonly request: { readonly url: string; readonly body: string }
  readonly response: {
    readonly status: number
    readonly headers: Record<string, string>
    readonly body: string
  }
}

export const cassette = (...path: ReadonlyArray<string>): ReadonlyArray<Interaction> =>
  (JSON.parse(read("cassettes", ...path)) as { readonly interactions: ReadonlyArray<Interaction> }).interactions
