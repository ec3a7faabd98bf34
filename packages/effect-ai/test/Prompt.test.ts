import { Message, ToolCall } from "@allm/core"
import { EffectAi } from "@allm/effect-ai"
import { Prompt } from "@effect/ai"
import { assert, describe, it } from "@effect/vitest"
import { Either, FastCheck as fc } from "effect"

const written = (messages: ReadonlyArray<Message.Message>): Prompt.Prompt =>
  Either.getOrThrow(EffectAi.toPrompt(messages))

// Without prototypes and the marks of their types.
const plain = (value: unknown): unknown =>
  JSON.parse(JSON.stringify(value, (key, member: unknown) => {
    if (key.startsWith("~")) return undefined
    return member instanceof Uint8Array ? [...member] : member
  }))

const json = fc.jsonValue({ maxDepth: 2 })
const metadata = fc.option(fc.dictionary(fc.stringMatching(/^[a-z]{1,5}$/), json, { maxKeys: 2 }), { nil: {} })
const words = fc.string({ minLength: 1, unit: "grapheme" })
const base64 = fc.uint8Array({ maxLength: 9 }).map((bytes) => Buffer.from(bytes).toString("base64"))

const image = fc.oneof(
  fc.record({ mediaType: fc.constantFrom("image/png", "application/pdf"), data: base64 }).map((source) =>
    Message.image(source)
  ),
  fc.record({ path: fc.stringMatching(/^[a-z]{1,8}$/), detail: fc.constantFrom(undefined, "low") }).map(
    ({ detail, path }) => Message.image(`https://allm.example/${path}.png`, { detail })
  )
)

const call = fc.record({
  name: fc.constantFrom("get_weather", "get_time"),
  raw: fc.oneof(json.map((value) => JSON.stringify(value)), fc.constantFrom("{\"city\":", "[1,")),
  metadata
})

const calls = (turn: number) =>
  fc.array(call, { maxLength: 3 }).map((made) =>
    made.map(({ metadata, name, raw }, index) => {
      const read = ToolCall.fromRaw({ id: `call_${turn}_${index}`, name, rawArguments: raw, metadata })
      return read.arguments === undefined
        ? read
        : ToolCall.make({ id: read.id, name, arguments: read.arguments, metadata })
    })
  )

const name = fc.constantFrom(undefined, "ada")

const content = fc.oneof(
  words,
  fc.array(fc.oneof(words.map(Message.text), image), { minLength: 2, maxLength: 3 })
)

/** A turn: someone speaks, the model answers with calls, and each call is answered. */
const turn = (index: number): fc.Arbitrary<ReadonlyArray<Message.Message>> =>
  fc.record({
    system: fc.option(fc.record({ content: words, metadata }), { nil: undefined }),
    user: fc.record({ content, name, metadata }),
    text: fc.oneof(fc.constant(""), words),
    calls: calls(index),
    assistant: fc.record({ name, metadata }),
    result: fc.oneof(words, json.filter((value) => typeof value !== "string").map((value) => JSON.stringify(value))),
    isError: fc.boolean(),
    tool: metadata
  }).map((made) => [
    ...(made.system === undefined ? [] : [Message.system(made.system.content, made.system)]),
    Message.user(made.user.content, made.user),
    Message.assistant(made.text, { ...made.assistant, toolCalls: made.calls }),
    ...made.calls.map(({ id }) => Message.tool(id, made.result, { isError: made.isError, metadata: made.tool }))
  ])

const conversation = fc.tuple(turn(0), turn(1)).map((turns) => turns.flat())

// Text that is JSON goes through as JSON.
const normal = (message: Message.Message): Message.Message => {
  if (message.role !== "tool") return message
  const parsed = Either.try((): unknown => JSON.parse(message.content))
  return Either.isRight(parsed) && typeof parsed.right !== "string"
    ? { ...message, content: JSON.stringify(parsed.right) }
    : message
}

const options = fc.constantFrom<Prompt.ProviderOptions>(
  {},
  { openai: { itemId: "item_1" } },
  { anthropic: { cacheControl: { type: "ephemeral" } } }
)

const file = fc.record({
  mediaType: fc.constantFrom("image/png", "application/pdf"),
  data: fc.oneof<[fc.Arbitrary<string | Uint8Array | URL>, fc.Arbitrary<Uint8Array>, fc.Arbitrary<URL>]>(
    base64.filter((text) => text !== ""),
    fc.uint8Array({ maxLength: 9 }),
    fc.constant(new URL("https://allm.example/a.png"))
  ),
  options
}).map((params) => Prompt.makePart("file", params))

const text = fc.record({ text: words, options }).map((params) => Prompt.makePart("text", params))

const said = (turn: number) =>
  fc.array(
    fc.oneof<Array<fc.Arbitrary<Prompt.AssistantMessagePart>>>(
      text,
      fc.record({ text: fc.string(), options }).map((params) => Prompt.makePart("reasoning", params)),
      fc.record({ params: fc.dictionary(words, json), options }).map((part) =>
        Prompt.makePart("tool-call", { id: "", name: "get_weather", providerExecuted: false, ...part })
      ),
      fc.constant(
        Prompt.makePart("tool-call", { id: "p", name: "WebSearch", params: { query: "x" }, providerExecuted: true })
      ),
      fc.constant(
        Prompt.makePart("tool-result", {
          id: "p",
          name: "WebSearch",
          result: [1],
          isFailure: false,
          providerExecuted: true
        })
      )
    ),
    { minLength: 1, maxLength: 5 }
  ).map((parts) =>
    parts.map((part, index) => "id" in part && part.id === "" ? { ...part, id: `call_${turn}_${index}` } : part)
  )

const prompt = fc.tuple(
  said(0),
  said(1),
  fc.array(fc.oneof(text, file), { minLength: 1, maxLength: 3 }),
  options,
  options
)
  .map(([first, second, asked, ofMessage, ofTool]) =>
    Prompt.fromMessages([
      Prompt.makeMessage("system", { content: "Be brief.", options: ofMessage }),
      ...[first, second].flatMap((content): ReadonlyArray<Prompt.Message> => {
        const results = content.flatMap((part) =>
          part.type === "tool-call" && !part.providerExecuted
            ? [Prompt.makePart("tool-result", {
              id: part.id,
              name: part.name,
              result: { city: "Oslo", days: [1, null] },
              isFailure: true,
              providerExecuted: false,
              options: ofTool
            })]
            : []
        )
        return [
          Prompt.makeMessage("user", { content: asked, options: ofMessage }),
          Prompt.makeMessage("assistant", { content, options: ofMessage }),
          ...(results.length === 0 ? [] : [Prompt.makeMessage("tool", { content: results, options: ofMessage })])
        ]
      })
    ])
  )

describe("EffectAi", () => {
  describe("toPrompt and fromPrompt", () => {
    it("give back the messages that went in", () => {
      fc.assert(fc.property(conversation, (messages) => {
        assert.deepStrictEqual(EffectAi.fromPrompt(written(messages)), messages.map(normal))
      }))
    })

    it("give back the prompt that went in", () => {
      fc.assert(fc.property(prompt, (given) => {
        assert.deepStrictEqual(plain(written(EffectAi.fromPrompt(given))), plain(given))
      }))
    })

    it("go through a store", () => {
      fc.assert(fc.property(prompt, (given) => {
        const stored = JSON.parse(JSON.stringify(EffectAi.fromPrompt(given))) as ReadonlyArray<Message.Message>

        assert.deepStrictEqual(plain(written(stored)), plain(given))
      }))
    })
  })

  describe("toPrompt", () => {
    it("writes each role as theirs", () => {
      const messages = [
        Message.system("Be brief."),
        Message.user([Message.text("What is it?"), Message.image("data:image/png;base64,AQID", { detail: "low" })]),
        Message.assistant("I look.", {
          toolCalls: [
            ToolCall.make({ id: "c0", name: "look", arguments: { at: "it" } }),
            ToolCall.fromRaw({ id: "c1", name: "look", rawArguments: "{\"at\":" })
          ]
        }),
        Message.tool("c0", "{\"seen\": [\"a\", 1]}"),
        Message.tool("c1", "not JSON", { isError: true }),
        Message.user("And now?")
      ]

      assert.deepStrictEqual(plain(written(messages)), {
        content: [
          { role: "system", content: "Be brief.", options: {} },
          {
            role: "user",
            content: [
              { type: "text", text: "What is it?", options: {} },
              { type: "file", mediaType: "image/png", data: [1, 2, 3], options: { openai: { imageDetail: "low" } } }
            ],
            options: {}
          },
          {
            role: "assistant",
            content: [
              { type: "text", text: "I look.", options: {} },
              { type: "tool-call", id: "c0", name: "look", params: { at: "it" }, providerExecuted: false, options: {} },
              {
                type: "tool-call",
                id: "c1",
                name: "look",
                params: { invalidJson: "{\"at\":" },
                providerExecuted: false,
                options: { allm: { rawArguments: "{\"at\":" } }
              }
            ],
            options: {}
          },
          {
            role: "tool",
            content: [
              {
                type: "tool-result",
                id: "c0",
                name: "look",
                isFailure: false,
                result: { seen: ["a", 1] },
                providerExecuted: false,
                options: {}
              },
              {
                type: "tool-result",
                id: "c1",
                name: "look",
                isFailure: true,
                result: "not JSON",
                providerExecuted: false,
                options: {}
              }
            ],
            options: {}
          },
          { role: "user", content: [{ type: "text", text: "And now?", options: {} }], options: {} }
        ]
      })
    })

    it("keeps text whose JSON would lose something", () => {
      const results = ["12345678901234567890", "{\"b\":1,\"1\":2}", "1.0", "\"quoted\"", "sunny", " "]
      const messages = [
        Message.assistant("", {
          toolCalls: results.map((_, index) => ToolCall.make({ id: `c${index}`, name: "look", arguments: {} }))
        }),
        ...results.map((content, index) => Message.tool(`c${index}`, content))
      ]

      const [, tool] = written(messages).content
      assert.deepStrictEqual(tool?.role === "tool" ? tool.content.map(({ result }) => result) : [], results)
    })

    it("takes what someone changed in a message rather than what it was", () => {
      const [message] = EffectAi.fromPrompt([{
        role: "assistant",
        content: [
          { type: "reasoning", text: "Hm.", options: { anthropic: { type: "thinking", signature: "s" } } },
          { type: "text", text: "One.", options: { openai: { itemId: "a" } } },
          { type: "text", text: "Two.", options: { openai: { itemId: "b" } } },
          { type: "tool-call", id: "c0", name: "look", params: {} },
          { type: "tool-call", id: "c1", name: "look", params: {} }
        ]
      }])
      assert(message?.role === "assistant")
      const changed = {
        ...message,
        content: "Three.",
        toolCalls: [message.toolCalls[1]!, ToolCall.make({ id: "c2", name: "look", arguments: {} })]
      }

      const [assistant] = written([changed]).content
      assert(assistant?.role === "assistant")
      assert.deepStrictEqual(
        assistant.content.map((part) => part.type === "tool-call" ? part.id : "text" in part ? part.text : ""),
        ["Hm.", "Three.", "c1", "c2"]
      )
      assert.deepStrictEqual(assistant.content[0]?.options, { anthropic: { type: "thinking", signature: "s" } })
    })

    it("reads what it cannot understand of its own as nothing", () => {
      const message = Message.assistant("Hi.", { metadata: { effectAi: { parts: [{ type: "hologram" }] } } })

      assert.deepStrictEqual(plain(written([message])), plain(written([Message.assistant("Hi.")])))
    })

    it("says which message a prompt cannot hold, and why", () => {
      const image = Message.image("https://allm.example/a.png")
      const problems = [
        [Message.user("Hi"), Message.system([image])],
        [Message.user([Message.image("a.png")])],
        [Message.user([Message.image({ mediaType: "image/png", data: "&" })])]
      ].map((messages) =>
        Either.match(EffectAi.toPrompt(messages), {
          onLeft: (error) => error.issues.map(({ message, path }) => `${path.join(".")}: ${message}`).join(),
          onRight: () => ""
        })
      )

      assert.deepStrictEqual(problems, [
        "1.content: a system message is text; put the image into a user message",
        "0.content: the image \"a.png\" has no address; write one such as \"https://…\"",
        "0.content: the data of an image is not base64; write Message.image({ mediaType, data })"
      ])
    })
  })
})
