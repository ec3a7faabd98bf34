import { Message, type Request, Tool, ToolCall } from "@allm/core"
import { Google } from "@allm/google"
import { UrlParams } from "@effect/platform"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Either, Option, Schema } from "effect"
import { chunk, contentsOf, encoded, messageOf, model, read, requestOf, stop } from "./support.ts"

const refusal = (fields: Partial<Request.Request>) => {
  const { model: named, ...rest } = requestOf(fields)
  const request = "model" in fields && fields.model === undefined ? rest : { ...rest, model: named! }
  return Either.getOrThrow(Either.flip(Google.protocol().encode(request)))
}

describe("requests", () => {
  it("go to the model, without the key in the address", () => {
    const written = (named: string, config?: Google.Config) =>
      Either.getOrThrow(Google.protocol(config).encode(requestOf({ model: named })))
    const request = written("gemini-3-pro", { headers: { "X-Team": "a" } })

    assert.strictEqual(request.method, "POST")
    assert.strictEqual(
      request.url,
      "https://generativelanguage.googleapis.com/v1beta/models/gemini-3-pro:streamGenerateContent"
    )
    assert.deepStrictEqual(UrlParams.toRecord(request.urlParams), { alt: "sse" })
    assert.strictEqual(request.headers["x-team"], "a")
    assert.strictEqual(request.headers["content-type"], "application/json")
    assert.isTrue(Option.isNone(request.hash))
    assert.strictEqual(
      written("tunedModels/my own", { baseUrl: "http://localhost:1/v1/" }).url,
      "http://localhost:1/v1/tunedModels/my%20own:streamGenerateContent"
    )
  })

  it("need a model and something to answer", () => {
    assert.deepInclude({ ...refusal({ model: undefined as never }) }, { reason: "invalid_request", provider: "google" })
    assert.include(refusal({ model: undefined as never }).detail, "model: \"gemini-…\"")
    assert.include(refusal({ messages: [Message.system("Be brief.")] }).detail, "Message.user")
    assert.include(refusal({ messages: [Message.user("")] }).detail, "Message.user")
  })

  it("that are no JSON are refused", () => {
    const error = Either.getOrThrow(Either.flip(Google.protocol().encode({ ...requestOf(), options: { big: 1n } })))
    assert.deepInclude({ ...error }, { reason: "invalid_request" })
    assert.include(error.detail, "params")
  })

  it("have all of the system's words in one place, in order", () => {
    const body = encoded(requestOf({
      messages: [
        Message.system("Be brief."),
        Message.user("Hi"),
        Message.assistant("Hello"),
        Message.system([Message.text("Be "), Message.text("kind.")]),
        Message.user("Well?")
      ]
    }))
    assert.deepStrictEqual(body, {
      contents: [
        { role: "user", parts: [{ text: "Hi" }] },
        { role: "model", parts: [{ text: "Hello" }] },
        { role: "user", parts: [{ text: "Well?" }] }
      ],
      systemInstruction: { parts: [{ text: "Be brief." }, { text: "Be kind." }] }
    })
  })

  it("of the system hold no images", () => {
    const error = refusal({
      messages: [Message.system([Message.image("https://allm.example/a.png")]), Message.user("Hi")]
    })
    assert.strictEqual(error.reason, "unsupported_feature")
    assert.include(error.detail, "put the image into a user message")
  })

  it("say temperature and length in Gemini's words", () => {
    const body = encoded(requestOf({ temperature: 0, maxTokens: 80 }))
    assert.deepStrictEqual(body["generationConfig"], { maxOutputTokens: 80, temperature: 0 })
    assert.notProperty(encoded(requestOf()), "generationConfig")
  })

  it("pass on what only Gemini knows; it wins, and adds to what is made of several settings", () => {
    const add = Tool.declaration(Tool.make("add", { description: "Adds", handler: () => 1 }))
    const body = encoded(requestOf({
      temperature: 1,
      maxTokens: 5,
      tools: [add],
      toolChoice: "auto",
      messages: [Message.system("Be brief."), Message.user("Hi")],
      options: {
        generationConfig: { temperature: 0.5, topK: 3, thinkingConfig: { includeThoughts: true } },
        toolConfig: { retrievalConfig: { languageCode: "de" } },
        tools: [{ googleSearch: {} }],
        systemInstruction: { parts: [{ text: "Be long." }] },
        safetySettings: [],
        novelty: 1
      }
    }))
    assert.deepStrictEqual(body, {
      contents: [{ role: "user", parts: [{ text: "Hi" }] }],
      systemInstruction: { parts: [{ text: "Be long." }] },
      generationConfig: {
        maxOutputTokens: 5,
        temperature: 0.5,
        topK: 3,
        thinkingConfig: { includeThoughts: true }
      },
      tools: [{ functionDeclarations: [{ name: "add", description: "Adds" }] }, { googleSearch: {} }],
      toolConfig: { functionCallingConfig: { mode: "AUTO" }, retrievalConfig: { languageCode: "de" } },
      safetySettings: [],
      novelty: 1
    })
  })
})

describe("tools", () => {
  const add = Tool.declaration(
    Tool.make("add", { description: "Adds", parameters: { a: Schema.Int }, handler: () => 1 })
  )

  it("are declared with their JSON Schema, and without one when they take nothing", () => {
    const look = Tool.declaration(Tool.fromJsonSchema("look", { description: "Looks", schema: { type: "object" } }))
    assert.deepStrictEqual(encoded(requestOf({ tools: [add, look] }))["tools"], [{
      functionDeclarations: [
        {
          name: "add",
          description: "Adds",
          parametersJsonSchema: {
            type: "object",
            required: ["a"],
            properties: { a: { type: "integer", title: "int", description: "an integer" } },
            additionalProperties: false
          }
        },
        { name: "look", description: "Looks" }
      ]
    }])
  })

  it("may, must or must not be called", () => {
    const config = (toolChoice: Request.ToolChoice, tools = [add]) =>
      encoded(requestOf({ toolChoice, tools }))["toolConfig"]
    assert.deepStrictEqual(config("auto"), { functionCallingConfig: { mode: "AUTO" } })
    assert.deepStrictEqual(config("none"), { functionCallingConfig: { mode: "NONE" } })
    assert.deepStrictEqual(config("required"), { functionCallingConfig: { mode: "ANY" } })
    assert.deepStrictEqual(config({ tool: "add" }), {
      functionCallingConfig: { mode: "ANY", allowedFunctionNames: ["add"] }
    })
    assert.include(refusal({ toolChoice: "required" }).detail, "there are none")
    assert.include(refusal({ toolChoice: { tool: "add" } }).detail, "there are none")
    const given = { functionDeclarations: [{ name: "look" }] }
    assert.deepStrictEqual(encoded(requestOf({ toolChoice: "required", options: { tools: [given] } }))["toolConfig"], {
      functionCallingConfig: { mode: "ANY" }
    })
    assert.isUndefined(config("auto", []))
    assert.isUndefined(config("none", []))
    assert.isUndefined(encoded(requestOf({ tools: [add] }))["toolConfig"])
  })
})

describe("the form of the answer", () => {
  const config = (responseFormat: Request.ResponseFormat) => encoded(requestOf({ responseFormat }))["generationConfig"]

  it("is text, JSON, or JSON of a schema", () => {
    assert.isUndefined(config({ type: "text" }))
    assert.deepStrictEqual(config({ type: "json_object" }), { responseMimeType: "application/json" })
    const schema = { type: "object", properties: { a: { type: "string", minLength: 1 } }, additionalProperties: false }
    assert.deepStrictEqual(config({ type: "json_schema", name: "answer", schema, strict: true }), {
      responseMimeType: "application/json",
      responseJsonSchema: {
        type: "object",
        properties: { a: { type: "string", description: "{\"minLength\":1}" } },
        additionalProperties: false
      }
    })
  })
})

describe("messages", () => {
  it("of the user have texts and images", () => {
    assert.deepStrictEqual(
      contentsOf([
        Message.user([
          Message.text("What is this?"),
          Message.text(""),
          Message.image("data:image/png;base64,iVBO"),
          Message.image("https://allm.example/cat.JPG?size=2"),
          Message.image("https://allm.example/v1.2/cat"),
          Message.image("gs://bucket/cat.webp"),
          { type: "image", source: { type: "url", url: "data:image/gif;base64,R0lG" } }
        ])
      ]),
      [{
        role: "user",
        parts: [
          { text: "What is this?" },
          { inlineData: { mimeType: "image/png", data: "iVBO" } },
          { fileData: { mimeType: "image/jpeg", fileUri: "https://allm.example/cat.JPG?size=2" } },
          { fileData: { fileUri: "https://allm.example/v1.2/cat" } },
          { fileData: { mimeType: "image/webp", fileUri: "gs://bucket/cat.webp" } },
          { inlineData: { mimeType: "image/gif", data: "R0lG" } }
        ]
      }]
    )
  })

  it("of one kind one after the other are one content; empty ones are none", () => {
    assert.deepStrictEqual(
      contentsOf([
        Message.user("a"),
        Message.assistant(""),
        Message.user("b"),
        Message.assistant("c"),
        Message.system("s"),
        Message.assistant("d"),
        Message.user("e")
      ]),
      [
        { role: "user", parts: [{ text: "a" }, { text: "b" }] },
        { role: "model", parts: [{ text: "c" }, { text: "d" }] },
        { role: "user", parts: [{ text: "e" }] }
      ]
    )
  })

  it("answer all calls of a turn in one content, by name and id, errors as errors", () => {
    assert.deepStrictEqual(
      contentsOf([
        Message.user("Weather?"),
        Message.assistant("I look.", {
          toolCalls: [
            ToolCall.make({ id: "c0", name: "get_weather", arguments: { city: "Oslo" } }),
            ToolCall.fromRaw({ id: "c1", name: "get_weather", rawArguments: "{\"city\":" }),
            ToolCall.fromRaw({ id: "c2", name: "get_time", rawArguments: "[1]" })
          ]
        }),
        Message.tool("c0", "{\"sky\":\"clear\"}"),
        Message.tool("c1", "not JSON", { isError: true }),
        Message.tool("c2", "12:00"),
        Message.user("And now?")
      ]),
      [
        { role: "user", parts: [{ text: "Weather?" }] },
        {
          role: "model",
          parts: [
            { text: "I look." },
            { functionCall: { id: "c0", name: "get_weather", args: { city: "Oslo" } } },
            { functionCall: { id: "c1", name: "get_weather", args: {} } },
            { functionCall: { id: "c2", name: "get_time", args: {} } }
          ]
        },
        {
          role: "user",
          parts: [
            { functionResponse: { id: "c0", name: "get_weather", response: { output: "{\"sky\":\"clear\"}" } } },
            { functionResponse: { id: "c1", name: "get_weather", response: { error: "not JSON" } } },
            { functionResponse: { id: "c2", name: "get_time", response: { output: "12:00" } } }
          ]
        },
        { role: "user", parts: [{ text: "And now?" }] }
      ]
    )
  })

  it("that answer a call nobody made are refused", () => {
    const error = refusal({ messages: [Message.user("Hi"), Message.tool("c9", "5")] })
    assert.deepInclude({ ...error }, { reason: "invalid_request" })
    assert.include(error.detail, "\"c9\"")
  })

  it("with an id that was used before answer the call before them", () => {
    const made = (name: string) =>
      Message.assistant("", { toolCalls: [ToolCall.make({ id: "c", name, arguments: {} })] })
    const contents = contentsOf([
      Message.user("Hi"),
      made("a"),
      Message.tool("c", "1"),
      made("b"),
      Message.tool("c", "2")
    ])
    assert.deepInclude((contents as ReadonlyArray<unknown>)[4], {
      parts: [{ functionResponse: { id: "c", name: "b", response: { output: "2" } } }]
    })
  })
})

describe("an answer of Gemini", () => {
  /** What an answer becomes when it is sent back, changed or not. */
  const sentBack = (
    parts: ReadonlyArray<unknown>,
    change: (message: Message.AssistantMessage) => Message.AssistantMessage = (message) => message,
    named = model
  ) =>
    Effect.map(read(parts.map((part, index) => chunk([part], index === parts.length - 1 ? stop : {}))), (events) => {
      // As from a store.
      const stored = Schema.decodeUnknownSync(Message.AssistantMessage)(JSON.parse(JSON.stringify(messageOf(events))))
      const contents = contentsOf([Message.user("Hi"), change(stored)], { model: named }) as ReadonlyArray<
        { readonly parts: ReadonlyArray<unknown> }
      >
      return contents[1]?.parts
    })

  it.effect("goes back part by part, with its signatures, as it came", () =>
    Effect.gen(function*() {
      const parts = [
        { text: "Let me see.", thought: true, thoughtSignature: "s0" },
        { text: "I look" },
        { text: " around.", thoughtSignature: "s1" },
        { functionCall: { name: "look", args: { at: "a" } }, thoughtSignature: "s2" },
        { functionCall: { id: "g1", name: "look", args: { at: "b" } } },
        { executableCode: { language: "PYTHON", code: "1" } },
        { codeExecutionResult: { outcome: "OUTCOME_OK", output: "1" } },
        { text: "Done" },
        { inlineData: { mimeType: "image/png", data: "iVBO" }, thoughtSignature: "s3" },
        { text: "", thoughtSignature: "s4" }
      ]
      assert.deepStrictEqual(yield* sentBack(parts), parts)
      assert.deepStrictEqual(yield* sentBack(parts, undefined, "gemini-3-pro"), parts)
    }))

  it.effect("has thoughts without a signature, and empty texts, left out", () =>
    Effect.gen(function*() {
      const parts = [{ text: "Hm.", thought: true }, { text: "Hel" }, { text: "" }, { text: "lo" }]
      assert.deepStrictEqual(yield* sentBack(parts), [{ text: "Hello" }])
    }))

  it.effect("keeps the signatures of its calls when its text is changed, not those of the text", () =>
    Effect.gen(function*() {
      const parts = [
        { text: "secret", thoughtSignature: "s1" },
        { functionCall: { name: "look", args: {} }, thoughtSignature: "s2" }
      ]
      assert.deepStrictEqual(yield* sentBack(parts, (message) => ({ ...message, content: "***" })), [
        { text: "***" },
        parts[1]
      ])
    }))

  it.effect("whose calls were taken away or added to has those that are there", () =>
    Effect.gen(function*() {
      const parts = [
        { functionCall: { name: "look", args: { at: "a" } }, thoughtSignature: "s" },
        { functionCall: { name: "look", args: { at: "b" } } }
      ]
      const other = ToolCall.make({ id: "other", name: "wait", arguments: {} })
      assert.deepStrictEqual(
        yield* sentBack(parts, (message) => ({ ...message, toolCalls: [other, ...message.toolCalls.slice(0, 1)] })),
        [parts[0], { functionCall: { name: "wait", args: {} } }]
      )
      assert.isUndefined(yield* sentBack(parts, (message) => ({ ...message, toolCalls: [] })))
    }))

  it.effect("is answered by the id Gemini gave, and by none where it gave none", () =>
    Effect.gen(function*() {
      const events = yield* read([
        chunk([{ functionCall: { name: "look" } }, { functionCall: { id: "g1", name: "look" } }], stop)
      ])
      const message = messageOf(events)
      const contents = contentsOf([
        Message.user("Hi"),
        message,
        ...message.toolCalls.map(({ id }, index) => Message.tool(id, `${index}`))
      ])
      assert.deepInclude((contents as ReadonlyArray<unknown>)[2], {
        parts: [
          { functionResponse: { name: "look", response: { output: "0" } } },
          { functionResponse: { id: "g1", name: "look", response: { output: "1" } } }
        ]
      })
    }))

  it("may have been kept by somebody else: what cannot be read there is left out", () => {
    const toolCalls = [ToolCall.make({ id: "c0", name: "look", arguments: {} })]
    const metadata = {
      google: { parts: [null, "x", { text: "5" }, { call: 7 }, { call: "c0", signature: 5 }, { part: "x" }] },
      openai: { itemId: "i" }
    }
    assert.deepStrictEqual(contentsOf([Message.user("Hi"), Message.assistant("Hello", { toolCalls, metadata })]), [
      { role: "user", parts: [{ text: "Hi" }] },
      { role: "model", parts: [{ text: "Hello" }, { functionCall: { name: "look", args: {} } }] }
    ])
  })
})

describe("calls another model made", () => {
  const history = [
    Message.user("Hi"),
    Message.assistant("", {
      toolCalls: [
        ToolCall.make({ id: "c0", name: "look", arguments: {} }),
        ToolCall.make({ id: "c1", name: "look", arguments: {} })
      ]
    }),
    Message.tool("c0", "a door"),
    Message.tool("c1", "a wall")
  ]
  const firstCall = (named: string) =>
    (contentsOf(history, { model: named }) as ReadonlyArray<{ readonly parts: ReadonlyArray<unknown> }>)[1]?.parts

  it("say so to models that want to see signatures", () => {
    for (const named of ["gemini-3-pro-preview", "models/gemini-3.1-flash", "gemini-4-pro", "gemini-flash-latest"]) {
      assert.deepStrictEqual(firstCall(named), [
        { functionCall: { id: "c0", name: "look", args: {} }, thoughtSignature: "skip_thought_signature_validator" },
        { functionCall: { id: "c1", name: "look", args: {} } }
      ], named)
    }
  })

  it("are sent as they are to the others", () => {
    for (const named of ["gemini-2.5-pro", "models/gemini-2.0-flash", "gemma-3-27b-it", "tunedModels/mine"]) {
      assert.notProperty((firstCall(named) as ReadonlyArray<object>)[0], "thoughtSignature", named)
    }
  })
})
