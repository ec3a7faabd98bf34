import { Anthropic } from "@allm/anthropic"
import { Allm, Message, Thread, Tool } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Schema } from "effect"
import * as fc from "effect/FastCheck"
import {
  answerOf,
  apiKey,
  begun,
  bodyOf,
  call,
  clientOf,
  ended,
  type Frame,
  type Json,
  over,
  sse,
  sseOf,
  started,
  stopped,
  text,
  thinking
} from "./wire.ts"

const look = Tool.make("look", { description: "Looks", handler: () => "seen" })

/** Answers one after the other, and what was asked for them. */
const model = (answers: ReadonlyArray<ReadonlyArray<Frame>>) => {
  const seen: Array<Json> = []
  const Client = clientOf((request, index) => {
    seen.push(bodyOf(request))
    return sse(sseOf(answers[index] ?? []))
  })
  return { seen, Client }
}

const calls = (...content: ReadonlyArray<Frame>): ReadonlyArray<Frame> => [
  started(),
  ...content,
  ...call(9, { id: "toolu_1", name: "look" }),
  stopped("tool_use"),
  ended
]

const turns = (body: Json | undefined) =>
  body?.messages as ReadonlyArray<{ readonly role: string; readonly content: ReadonlyArray<Json> }>

describe("a chat", () => {
  it.effect("gives the model its thoughts back, also after the thread was stored", () =>
    Effect.gen(function*() {
      const { Client, seen } = model([
        calls(...thinking(0, "sig1", "First."), ...text(1, "I look.")),
        answerOf(...thinking(0, "sig2", "Second."), ...text(1, "Seen.")),
        answerOf(...text(0, "Bye."))
      ])
      yield* Effect.gen(function*() {
        const { thread } = yield* Allm.chat("Look.")
        const stored = yield* Schema.encode(Schema.parseJson(Thread.Thread))(thread)
        const again = yield* Schema.decode(Schema.parseJson(Thread.Thread))(stored)
        yield* Allm.chat(Thread.append(again, Message.user("Thanks.")))
      }).pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-sonnet-5", tools: [look] })),
        Effect.provide(Client)
      )

      const first = [
        { type: "thinking", thinking: "First.", signature: "sig1" },
        { type: "text", text: "I look." },
        { type: "tool_use", id: "toolu_1", name: "look", input: {} }
      ]
      assert.deepStrictEqual(turns(seen[1])[1], { role: "assistant", content: first })
      assert.deepStrictEqual(turns(seen[2]), [
        { role: "user", content: [{ type: "text", text: "Look." }] },
        { role: "assistant", content: first },
        { role: "user", content: [{ type: "tool_result", tool_use_id: "toolu_1", content: "seen" }] },
        {
          role: "assistant",
          content: [{ type: "thinking", thinking: "Second.", signature: "sig2" }, { type: "text", text: "Seen." }]
        },
        { role: "user", content: [{ type: "text", text: "Thanks." }] }
      ])
    }))

  it.effect("goes on after a pause, from where the model was", () =>
    Effect.gen(function*() {
      const search = { type: "server_tool_use", id: "srvtoolu_1", name: "web_search", input: { query: "a" } }
      const found = { type: "web_search_tool_result", tool_use_id: "srvtoolu_1", content: [] }
      const { Client, seen } = model([
        [started(), ...text(0, "I search. "), begun(1, search), over(1), stopped("pause_turn"), ended],
        answerOf(begun(0, found), over(0), ...text(1, "Found.")),
        answerOf(...text(0, "Bye."))
      ])
      yield* Effect.gen(function*() {
        const first = yield* Allm.chat("Search.")
        assert.strictEqual(first.haltedReason, "completed")
        assert.strictEqual(first.steps.length, 2)
        assert.strictEqual(first.finalResponse.outputText, "Found.")
        yield* Allm.chat(Thread.append(first.thread, Message.user("Thanks.")))
      }).pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-sonnet-5" })),
        Effect.provide(Client)
      )

      assert.deepStrictEqual(turns(seen[1]).at(-1), {
        role: "assistant",
        content: [{ type: "text", text: "I search. " }, search]
      })
      assert.deepStrictEqual(turns(seen[2])[1], {
        role: "assistant",
        content: [{ type: "text", text: "I search. " }, search, found, { type: "text", text: "Found." }]
      })
    }))

  it.effect("that ends in a form asks for it without tools, but still knows those that were called", () =>
    Effect.gen(function*() {
      const { Client, seen } = model([
        calls(),
        answerOf(...text(0, "Seen.")),
        answerOf(...text(0, "{\"seen\":true}"))
      ])
      const { value } = yield* Allm.object("Look.", { schema: Schema.Struct({ seen: Schema.Boolean }) }).pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-sonnet-5", tools: [look] })),
        Effect.provide(Client)
      )

      assert.deepStrictEqual(value, { seen: true })
      assert.deepStrictEqual(seen[2]?.tool_choice, { type: "none" })
      assert.deepStrictEqual((seen[2]!.tools as ReadonlyArray<Json>).map(({ name }) => name), ["look"])
      assert.property(seen[2], "output_config")
    }))

  it.effect("with broken arguments stays valid, and lets the model correct itself", () =>
    Effect.gen(function*() {
      const { Client, seen } = model([
        [started(), ...call(0, { id: "toolu_1", name: "look" }, "{\"at\":"), stopped("tool_use"), ended],
        answerOf(...text(0, "Sorry."))
      ])
      const result = yield* Allm.chat("Look.").pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-sonnet-5", tools: [look] })),
        Effect.provide(Client)
      )

      assert.strictEqual(result.finalResponse.outputText, "Sorry.")
      assert.deepStrictEqual(turns(seen[1])[1]?.content, [
        { type: "tool_use", id: "toolu_1", name: "look", input: {} }
      ])
      assert.deepInclude(turns(seen[1])[2]?.content[0], { tool_use_id: "toolu_1", is_error: true })
    }))

  it.effect("that broke off can be taken up again", () =>
    Effect.gen(function*() {
      const { Client, seen } = model([
        [started(), { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } }],
        answerOf(...text(0, "Hello."))
      ])
      yield* Effect.gen(function*() {
        const { haltedReason, thread } = yield* Allm.chat("Hi.")
        assert.strictEqual(haltedReason, "error")
        assert.deepStrictEqual(thread.messages.map(({ role }) => role), ["user", "assistant"])
        yield* Allm.chat(Thread.append(thread, Message.user("Again.")))
      }).pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-sonnet-5" })),
        Effect.provide(Client)
      )

      assert.deepStrictEqual(turns(seen[1]), [
        { role: "user", content: [{ type: "text", text: "Hi." }, { type: "text", text: "Again." }] }
      ])
    }))

  it.effect("that was refused is over", () =>
    Effect.gen(function*() {
      const { Client } = model([[started(), stopped("refusal"), ended]])
      const result = yield* Allm.chat("Hi.").pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-sonnet-5" })),
        Effect.provide(Client)
      )

      assert.strictEqual(result.haltedReason, "completed")
      assert.strictEqual(result.finalResponse.finishReason, "content_filter")
    }))
})

describe("what the model said", () => {
  const words = fc.string({ minLength: 1, unit: "grapheme" }).filter((word) => word.trim() !== "")
  const block: fc.Arbitrary<ReadonlyArray<Json>> = fc.oneof(
    words.map((text) => [{ type: "text", text }]),
    fc.tuple(words, words).map(([thinking, signature]) => [{ type: "thinking", thinking, signature }]),
    words.map((data) => [{ type: "redacted_thinking", data }]),
    fc.tuple(fc.uuid(), fc.dictionary(words, fc.jsonValue({ maxDepth: 1 }), { maxKeys: 2, noNullPrototype: true })).map(
      ([id, input]) => [
        { type: "mcp_tool_use", id, name: "echo", server_name: "echo", input: JSON.parse(JSON.stringify(input)) },
        { type: "mcp_tool_result", tool_use_id: id, is_error: false, content: [] }
      ]
    )
  )
  const answer = fc.array(block, { maxLength: 6 }).map((blocks) => [
    { type: "thinking", thinking: "Hm.", signature: "sig" },
    ...blocks.flat(),
    { type: "tool_use", id: "toolu_1", name: "look", input: {} }
  ])

  it.effect.prop("goes back exactly as it was said", [answer], ([content]) =>
    Effect.gen(function*() {
      const { Client, seen } = model([
        [
          started(),
          ...content.flatMap((block, index) => [begun(index, block), over(index)]),
          stopped("tool_use"),
          ended
        ],
        answerOf(...text(0, "Done."))
      ])
      yield* Allm.chat("Look.").pipe(
        Effect.provide(Anthropic.engine({ apiKey, model: "claude-sonnet-5", tools: [look] })),
        Effect.provide(Client)
      )

      assert.deepStrictEqual(turns(seen[1])[1]?.content, content)
    }))
})
