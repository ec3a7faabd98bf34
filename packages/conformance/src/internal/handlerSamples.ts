/**
 * Handlers of every kind, and what has to become of each.
 */
import { ToolResult } from "@allm/core"
import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Fiber from "effect/Fiber"
import * as FiberId from "effect/FiberId"
import * as ParseResult from "effect/ParseResult"
import * as Schema from "effect/Schema"

interface Expected {
  readonly _tag: "Ok" | "HandlerFailed" | "HandlerRaised" | "HandlerExit" | "InvalidReturn"
  readonly [field: string]: unknown
}

export interface Sample {
  readonly kind: string
  readonly handler: () => unknown
  readonly expected: Expected
}

const sample = (kind: string, expected: Expected, handler: () => unknown): Sample => ({ kind, handler, expected })

// Plain data, so that an executor in another process can pass too.
const data = { list: [1, "two", null], nested: { ok: true } }

const thenable = (then: (resolve: (value: unknown) => void, reject: (reason: unknown) => void) => void): object => ({
  // oxlint-disable-next-line unicorn/no-thenable
  then
})

const ok: Expected = { _tag: "Ok", value: data }

export const values: ReadonlyArray<Sample> = [
  sample("a value", ok, () => data),
  sample("a string", { _tag: "Ok", value: "" }, () => ""),
  sample("null", { _tag: "Ok", value: null }, () => null),
  sample("a promise", ok, () => Promise.resolve(data)),
  sample("an Effect", ok, () => Effect.succeed(data)),
  sample("an Effect that takes a turn", ok, () => Effect.zipRight(Effect.yieldNow(), Effect.succeed(data))),
  sample("ToolResult.ok", ok, () => ToolResult.ok(data)),
  sample("a promise of ToolResult.ok", ok, () => Promise.resolve(ToolResult.ok(data))),
  sample("an Effect of ToolResult.ok", ok, () => Effect.succeed(ToolResult.ok(data))),
  sample("a thenable", ok, () => thenable((resolve) => resolve(data))),
  sample("a thenable that settles twice", ok, () =>
    thenable((resolve, reject) => {
      resolve(data)
      reject("again")
    })),
  sample("data that looks like an outcome", { _tag: "Ok", value: { _tag: "Halt", reason: "stop" } }, () => ({
    _tag: "Halt",
    reason: "stop"
  }))
]

const failed: Expected = { _tag: "HandlerFailed", failure: data }

export const failures: ReadonlyArray<Sample> = [
  sample("Effect.fail", failed, () => Effect.fail(data)),
  sample("a late Effect.fail", failed, () => Effect.zipRight(Effect.yieldNow(), Effect.fail(data))),
  sample("ToolResult.error", failed, () => ToolResult.error(data)),
  sample("a promise of ToolResult.error", failed, () => Promise.resolve(ToolResult.error(data))),
  sample("an Effect of ToolResult.error", failed, () => Effect.succeed(ToolResult.error(data)))
]

const crashed: Expected = { _tag: "HandlerRaised", origin: "executor", cause: true }

const crash = (): never => {
  throw new TypeError("secret")
}

export const crashes: ReadonlyArray<Sample> = [
  sample("a throw", crashed, crash),
  sample("a rejection", crashed, () => Promise.reject(new TypeError("secret"))),
  sample("a rejection with nothing", crashed, () => Promise.reject(undefined)),
  sample("a defect", crashed, () => Effect.die("secret")),
  sample("a throw inside an Effect", crashed, () => Effect.sync(crash)),
  sample("a late defect", crashed, () => Effect.zipRight(Effect.yieldNow(), Effect.die("secret"))),
  sample("a thenable that throws", crashed, () => thenable(crash)),
  sample("a value that cannot be looked at", crashed, () => new Proxy({}, { has: crash, get: crash }))
]

const exited: Expected = { _tag: "HandlerExit", origin: "executor", cause: true }

export const exits: ReadonlyArray<Sample> = [
  sample("Effect.interrupt", exited, () => Effect.interrupt),
  sample("a late Effect.interrupt", exited, () => Effect.zipRight(Effect.yieldNow(), Effect.interrupt)),
  sample("a child that was interrupted", exited, () => Effect.flatMap(Effect.fork(Effect.interrupt), Fiber.join)),
  sample("an empty cause", exited, () => Effect.failCause(Cause.empty))
]

const interruption = Cause.interrupt(FiberId.none)

export const mixtures: ReadonlyArray<Sample> = [
  sample(
    "a failure beside a defect",
    failed,
    () => Effect.failCause(Cause.parallel(Cause.die("no"), Cause.fail(data)))
  ),
  sample(
    "a failure beside an interruption",
    failed,
    () => Effect.failCause(Cause.sequential(interruption, Cause.fail(data)))
  ),
  sample(
    "a defect beside an interruption",
    crashed,
    () => Effect.failCause(Cause.parallel(interruption, Cause.die("no")))
  )
]

const invalid: Expected = { _tag: "InvalidReturn", origin: "executor" }

export const malformed: ReadonlyArray<Sample> = [
  sample("a halt without a reason", invalid, () => ToolResult.halt("", null)),
  sample("an Effect inside an Effect", invalid, () => Effect.succeed(Effect.succeed(1))),
  // Callers without types write such things.
  sample("a question that is no string", invalid, () => ToolResult.askUser(7 as unknown as string))
]

export const hostileSchemas: ReadonlyArray<Schema.Schema<string>> = [
  Schema.transform(Schema.String, Schema.String, { strict: true, decode: crash, encode: crash }),
  Schema.transformOrFail(Schema.String, Schema.String, {
    strict: true,
    decode: () => Effect.die("secret"),
    encode: () => Effect.die("secret")
  }),
  Schema.transformOrFail(Schema.String, Schema.String, {
    strict: true,
    decode: (value, _options, ast) => ParseResult.fail(new ParseResult.Type(ast, value)),
    encode: (value, _options, ast) => ParseResult.fail(new ParseResult.Type(ast, value))
  })
]
