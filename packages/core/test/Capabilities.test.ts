import { type Adapter, Allm, Fake, Message, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"

const hello: Fake.Script = [Fake.text("hi"), Fake.finish("stop")]
const echo = Tool.make("echo", { description: "Says it again", handler: (args) => args })
const picture = Message.user([
  Message.text("What is this?"),
  Message.image("https://example.com/cat.png")
])
const City = Schema.Struct({ name: Schema.String })

const model = (capabilities: Adapter.Capabilities | undefined) => Fake.engine({ script: hello, capabilities })

const issuesOf = <A, R>(call: Effect.Effect<A, Allm.ChatError, R>) =>
  Effect.map(Effect.flip(call), (error) =>
    error._tag === "ValidationError"
      ? { reason: error.reason, issues: error.issues.map(({ code, path }) => [path.join("."), code]) }
      : error)

describe("what a model can do", () => {
  it.effect("CAP-01 is not asked when the adapter says nothing", () =>
    Effect.gen(function*() {
      const response = yield* Allm.generate([picture], { tools: [echo], responseFormat: City })

      assert.strictEqual(response.outputText, "hi")
    }).pipe(Effect.provide(model(undefined))))

  it.effect("CAP-02 refuses tools before the model is asked", () =>
    Effect.gen(function*() {
      const found = yield* issuesOf(Allm.chat("hi", { tools: [echo] }))

      assert.deepStrictEqual(found, { reason: "unsupported_capability", issues: [["tools", "tools_disabled"]] })
      assert.deepStrictEqual(yield* Fake.requests, [])
    }).pipe(Effect.provide(model({ tools: false }))))

  it.effect("CAP-02 refuses tools of a request, too", () =>
    Effect.gen(function*() {
      const found = yield* issuesOf(Allm.generate({
        messages: [Message.user("hi")],
        tools: [Tool.declaration(echo)],
        options: {},
        metadata: {}
      }))

      assert.deepStrictEqual(found, { reason: "unsupported_capability", issues: [["tools", "tools_disabled"]] })
    }).pipe(Effect.provide(model({ tools: false }))))

  it.effect("CAP-02 says what to do", () =>
    Effect.gen(function*() {
      const error = yield* Effect.flip(Allm.chat("hi", { tools: [echo] }))

      assert.strictEqual(
        error.message,
        "validation failed: unsupported_capability (1 error)\n- $.tools: fake cannot call tools; leave them out"
      )
    }).pipe(Effect.provide(model({ tools: false }))))

  it.effect("asks a model without tools when there are none", () =>
    Effect.gen(function*() {
      assert.strictEqual((yield* Allm.generate("hi")).outputText, "hi")
    }).pipe(Effect.provide(model({ tools: false, images: false, structuredOutput: false }))))

  it.effect("refuses a schema the model cannot follow", () =>
    Effect.gen(function*() {
      const found = yield* issuesOf(Allm.generate("hi", { responseFormat: City }))

      assert.deepStrictEqual(found, {
        reason: "unsupported_capability",
        issues: [["responseFormat", "json_native_disabled"]]
      })
    }).pipe(Effect.provide(model({ structuredOutput: false }))))

  it.effect("CAP-04 lets any JSON pass, which needs no such model", () =>
    Effect.gen(function*() {
      const response = yield* Allm.generate("hi", { responseFormat: { type: "json_object" } })

      assert.strictEqual(response.outputText, "hi")
    }).pipe(Effect.provide(model({ structuredOutput: false }))))

  it.effect("refuses images the model cannot see, and says which", () =>
    Effect.gen(function*() {
      const found = yield* issuesOf(Allm.generate([Message.user("hi"), picture]))

      assert.deepStrictEqual(found, {
        reason: "unsupported_capability",
        issues: [["messages.1", "vision_disabled"]]
      })
    }).pipe(Effect.provide(model({ images: false }))))

  it.effect("CAP-05 reports everything at once", () =>
    Effect.gen(function*() {
      const found = yield* issuesOf(Allm.chat([picture], { tools: [echo], responseFormat: City }))

      assert.deepStrictEqual(found, {
        reason: "unsupported_capability",
        issues: [["tools", "tools_disabled"], ["responseFormat", "json_native_disabled"], [
          "messages.0",
          "vision_disabled"
        ]]
      })
    }).pipe(Effect.provide(model({ tools: false, images: false, structuredOutput: false }))))
})
