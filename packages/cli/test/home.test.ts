import { assert, describe, it } from "@effect/vitest"
import { ConfigProvider, Effect, Option, TestClock } from "effect"
import { homedir } from "node:os"
import { join, resolve } from "node:path"
import * as Home from "../src/internal/home.ts"

const homeOf = (asked: string | undefined, variables: Record<string, string> = {}) =>
  Home.home(Option.fromNullable(asked)).pipe(
    Effect.map(({ directory }) => directory),
    Effect.withConfigProvider(ConfigProvider.fromMap(new Map(Object.entries(variables))))
  )

describe("home", () => {
  it.effect("is what is asked for, else $ALLM_HOME, else ~/.allm", () =>
    Effect.gen(function*() {
      assert.strictEqual(yield* homeOf("here", { ALLM_HOME: "/there" }), resolve("here"))
      assert.strictEqual(yield* homeOf(undefined, { ALLM_HOME: "/there" }), "/there")
      assert.strictEqual(yield* homeOf(" ", { ALLM_HOME: "" }), join(homedir(), ".allm"))
    }))

  it.effect("names sessions so that they sort by time", () =>
    Effect.gen(function*() {
      yield* TestClock.setTime(Date.UTC(2026, 10, 18, 20, 4, 32))
      const first = yield* Home.newSessionId
      const second = yield* Home.newSessionId
      yield* TestClock.adjust("1 second")
      const third = yield* Home.newSessionId

      assert.match(first, /^20261118-200432-[a-z2-9]{4}$/)
      assert.notStrictEqual(first, second)
      assert.isTrue(third > first && third > second)
    }))
})
