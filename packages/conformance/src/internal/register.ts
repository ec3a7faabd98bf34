/**
 * Checks as tests of vitest.
 */
import { describe, it } from "@effect/vitest"
import type { Check } from "../Check.ts"

export const register = (name: string, checks: ReadonlyArray<Check>, isLive = false): void => {
  const test = isLive ? it.live : it.effect
  describe(name, () => {
    for (const check of checks) {
      if (check.skipped === undefined) test(check.name, () => check.effect)
      else it.skip(`${check.name} (needs ${check.skipped})`, () => {})
    }
  })
}
