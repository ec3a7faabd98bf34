/**
 * Checks as tests of vitest.
 */
import { describe, it } from "@effect/vitest"
import * as Duration from "effect/Duration"
import type { Check, Options } from "../Check.ts"

export interface RegisterOptions extends Options {
  readonly live?: boolean | undefined
}

export const register = (name: string, checks: ReadonlyArray<Check>, options: RegisterOptions = {}): void => {
  const test = options.live === true ? it.live : it.effect
  // The check itself says that it took too long, and what it was doing.
  const timeout = options.limit === undefined ? undefined : Duration.toMillis(options.limit) + 2_000
  describe(name, () => {
    for (const check of checks) {
      if (check.skipped === undefined) test(check.name, () => check.effect, timeout)
      else it.skip(`${check.name} (needs ${check.skipped})`, () => {})
    }
  })
}
