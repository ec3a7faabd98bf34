import { EventLaws } from "@allm/conformance"
import { Allm, Message, type Request, Tool, ToolCall } from "@allm/core"
import { OpenAi } from "@allm/openai"
import { assert, describe, it } from "@effect/vitest"
import { Effect, Fiber, Redacted, Schema, TestClock } from "effect"
import {
  ask,
  callsOf,
  clientOf,
  ended,
  hello,
  reasoningOf,
  responseStream as stream,
  type Sent,
  sse,
  textOf,
  written
} from "./wire.ts"

const Responses = OpenAi.layer({ baseUrl: "http://responses.test/v1" })

const message = (id: string, text: string, rest: object = {}) => ({
  id,
  type: "message",
  role: "assistant",
  status: "completed",
  content: [{ type: "output_text", text, annotations: [] }],
  ...rest
})

const call = (id: string, name: string, args: string) => ({
  id: `fc_${id}`,
  type: "function_call",
  status: "completed",
  call_id: id,
  name,
  arguments: args
})

const reasoning = (id: string, rest: object = {}) => ({
  id,
  type: "reasoning",
  summary: [{ type: "summary_text", text: "Hm." }],
  encrypted_content: `secret of ${id}`,
  ...rest
})

const body = (request: Partial<Request.Request>, layer = Responses) =>
  Effect.map(written(layer, { ...hello, ...request }, () => sse(stream([message("m", "ok")]))), (sent) => sent.body)

const decoded = (frames: ReadonlyArray<unknown>) =>
  Effect.tap(
    ask(Responses, () => sse(frames)),
    (events) => Effect.sync(() => assert.deepStrictEqual(EventLaws.problems(events), []))
  )

const failure = (frames: ReadonlyArray<unknown>) => Effect.flip(ask(Responses, () => sse(frames)))

describe("a request", () => {
  it.effect("is written with what it says, and no more", () =>
    Effect.gen(function*() {
      const sent = yield* written(Responses, hello, () => sse(stream([message("m", "ok")])))
      assert.strictEqual(sent.url, "http://responses.test/v1/responses")
      assert.deepStrictEqual(sent.body, {
        model: "test-model",
        input: [{ role: "user", content: "Hi" }],
        stream: true
      })
    }))

  it.effect("holds every kind of message", () =>
    Effect.gen(function*() {
      const { input } = yield* body({
        messages: [
          Message.system("Be brief."),
          Message.user([Message.text("What is it?"), Message.image("https://allm.example/a.png", { detail: "low" })]),
          Message.user([Message.image({ mediaType: "image/png", data: "iVBO" })]),
          Message.assistant("I look.", {
            toolCalls: [
              ToolCall.make({ id: "c0", name: "look", arguments: { at: "it" } }),
              ToolCall.fromRaw({ id: "c1", name: "look", rawArguments: "{\"at\":" })
            ]
          }),
          Message.tool("c0", "a cat"),
          Message.tool("c1", "not JSON", { isError: true }),
          Message.assistant(""),
          Message.assistant("", { toolCalls: [ToolCall.make({ id: "c2", name: "look", arguments: {} })] }),
          Message.system("Now answer.")
        ]
      })
      assert.deepStrictEqual(input, [
        { role: "system", content: "Be brief." },
        {
          role: "user",
          content: [
            { type: "input_text", text: "What is it?" },
            { type: "input_image", image_url: "https://allm.example/a.png", detail: "low" }
          ]
        },
        { role: "user", content: [{ type: "input_image", image_url: "data:image/png;base64,iVBO", detail: "auto" }] },
        { role: "assistant", content: "I look." },
        { type: "function_call", call_id: "c0", name: "look", arguments: "{\"at\":\"it\"}" },
        { type: "function_call", call_id: "c1", name: "look", arguments: "{}" },
        { type: "function_call_output", call_id: "c0", output: "a cat" },
        { type: "function_call_output", call_id: "c1", output: "not JSON" },
        { type: "function_call", call_id: "c2", name: "look", arguments: "{}" },
        { role: "system", content: "Now answer." }
      ])
    }))

  it.effect("refuses images in other messages than the person's", () =>
    Effect.gen(function*() {
      const image = Message.image("https://allm.example/a.png")
      for (const message of [Message.assistant([image]), Message.system([image])]) {
        assert.strictEqual((yield* Effect.flip(body({ messages: [message] }))).reason, "unsupported_feature")
      }
    }))

  const time = Tool.declaration(Tool.make("get_time", {
    description: "Tells the time",
    parameters: { city: Schema.String },
    handler: () => "noon"
  }))

  it.effect("declares tools and chooses among them", () =>
    Effect.gen(function*() {
      const lenient = yield* body({ tools: [time], toolChoice: { tool: "get_time" } })
      assert.deepStrictEqual(lenient.tools, [{
        type: "function",
        name: "get_time",
        description: "Tells the time",
        parameters: time.inputSchema,
        strict: false
      }])
      assert.deepStrictEqual(lenient.tool_choice, { type: "function", name: "get_time" })
      for (const toolChoice of ["auto", "none", "required"] as const) {
        assert.strictEqual((yield* body({ tools: [time], toolChoice })).tool_choice, toolChoice)
      }
      assert.notProperty(yield* body({ toolChoice: "none" }), "tool_choice")

      const strict = yield* body(
        { tools: [time] },
        OpenAi.layer({ baseUrl: "http://responses.test", strictTools: true })
      )
      assert.isTrue(strict.tools[0].strict)
    }))

  it.effect("asks for a form, next to what else is said about the text", () =>
    Effect.gen(function*() {
      const schema = { type: "object", properties: {}, required: [], additionalProperties: false }
      const sent = yield* body({
        responseFormat: { type: "json_schema", name: "answer", schema, strict: true },
        options: { text: { verbosity: "low" } }
      })
      assert.deepStrictEqual(sent.text, {
        format: { type: "json_schema", name: "answer", schema, strict: true },
        verbosity: "low"
      })
      assert.deepStrictEqual((yield* body({ responseFormat: { type: "json_object" } })).text, {
        format: { type: "json_object" }
      })
      assert.notProperty(yield* body({ responseFormat: { type: "text" } }), "text")
    }))

  it.effect("passes on what only the provider knows", () =>
    Effect.gen(function*() {
      const sent = yield* body({
        temperature: 0.5,
        maxTokens: 100,
        tools: [time],
        options: { reasoning: { effort: "low" }, temperature: 1, tools: [{ type: "web_search" }] }
      })
      assert.deepInclude(sent, { temperature: 1, max_output_tokens: 100, reasoning: { effort: "low" } })
      assert.deepStrictEqual(sent.tools.map((tool: { type: string }) => tool.type), ["function", "web_search"])
    }))

  it.effect("has nothing stored when asked", () =>
    Effect.gen(function*() {
      const sent = yield* body({}, OpenAi.layer({ baseUrl: "http://responses.test", stateless: true }))
      assert.deepInclude(sent, { store: false, include: ["reasoning.encrypted_content"] })
    }))

  it.effect("goes to OpenAI, or to Azure with its version and its key", () =>
    Effect.gen(function*() {
      const key = { apiKey: Redacted.make("the-key") }
      const last = () => sse(stream([message("m", "ok")]))
      const own = yield* written(OpenAi.layer(key), hello, last)
      assert.strictEqual(own.url, "https://api.openai.com/v1/responses")
      assert.strictEqual(own.headers["authorization"], "Bearer the-key")

      const azure = yield* written(
        OpenAi.layer({ ...key, baseUrl: "https://acme.openai.azure.test/openai", apiVersion: "preview" }),
        hello,
        last
      )
      assert.strictEqual(azure.url, "https://acme.openai.azure.test/openai/responses?api-version=preview")
      assert.strictEqual(azure.headers["api-key"], "the-key")
      assert.notProperty(azure.headers, "authorization")
    }))

  it.effect("needs a model", () =>
    Effect.gen(function*() {
      const { model: _model, ...request } = hello
      const error = yield* Effect.flip(ask(OpenAi.layer({ apiKey: Redacted.make("k") }), () => sse([]), request))
      assert.deepStrictEqual([error.reason, error.detail], [
        "invalid_request",
        "there is no model; write model: \"…\" for the engine or the call"
      ])
    }))
})

describe("a stream", () => {
  it.effect("is text, its end and its usage", () =>
    Effect.gen(function*() {
      const events = yield* decoded(stream([message("msg_1", "Hello")], {
        usage: {
          input_tokens: 31,
          input_tokens_details: { cached_tokens: 8 },
          output_tokens: 21,
          output_tokens_details: { reasoning_tokens: 13 },
          total_tokens: 52
        },
        service_tier: "default"
      }))
      assert.deepStrictEqual(events, [
        { _tag: "MessageStarted", id: "resp_1", model: "test-model-1" },
        { _tag: "TextDelta", delta: "Hel" },
        { _tag: "TextDelta", delta: "lo" },
        { _tag: "TextCompleted", text: "Hello" },
        {
          _tag: "MessageCompleted",
          finishReason: "stop",
          rawFinishReason: "completed",
          usage: {
            inputTokens: 31,
            outputTokens: 21,
            totalTokens: 52,
            cachedInputTokens: 8,
            reasoningTokens: 13
          },
          metadata: { openai: { serviceTier: "default" } }
        }
      ])
    }))

  it.effect("tells several texts apart", () =>
    Effect.gen(function*() {
      const events = yield* decoded(stream([
        message("m1", "One."),
        {
          ...message("m2", "Two."),
          content: [{ type: "output_text", text: "Two." }, { type: "output_text", text: "3" }]
        }
      ]))
      assert.deepStrictEqual(
        events.flatMap((event) => event._tag === "TextCompleted" ? [[event.id, event.text]] : []),
        [[undefined, "One."], ["m2", "Two."], ["m2_1", "3"]]
      )
      assert.strictEqual(textOf(events), "One.Two.3")
    }))

  it.effect("makes calls, in pieces or in one", () =>
    Effect.gen(function*() {
      const calls = [call("a", "add", "{\"x\":1}"), call("b", "now", ""), call("c", "add", "{\"x\":")]
      const events = yield* decoded(stream(calls))
      assert.deepStrictEqual(callsOf(events), [
        { id: "a", name: "add", rawArguments: "{\"x\":1}", arguments: { x: 1 }, metadata: {} },
        { id: "b", name: "now", rawArguments: "", arguments: {}, metadata: {} },
        { id: "c", name: "add", rawArguments: "{\"x\":", metadata: {} }
      ])
      assert.isTrue(events.filter((event) => event._tag === "ToolCallDelta").length > 2)
      assert.deepInclude(ended(events), { finishReason: "tool_calls", rawFinishReason: "completed" })
      // All there is to repeat is in the message.
      assert.isUndefined(ended(events).message)
    }))

  it.effect("is understood however much of it is left out", () =>
    Effect.gen(function*() {
      const items = [reasoning("rs_1"), message("m1", "Hello"), call("a", "add", "{\"x\":1}")]
      const whole = stream(items)
      const variants: ReadonlyArray<(type: string) => boolean> = [
        (type) => !type.endsWith(".delta"),
        (type) => !type.endsWith(".done"),
        (type) => !type.startsWith("response.output_item"),
        (type) => type === "response.completed",
        (type) => type === "response.created" || type === "response.output_item.done" || type === "response.completed"
      ]
      for (const keep of variants) {
        const events = yield* decoded(whole.filter(({ type }) => keep(type)))
        assert.strictEqual(textOf(events), "Hello")
        assert.strictEqual(reasoningOf(events), "Hm.")
        assert.deepStrictEqual(callsOf(events).map(({ arguments: args, id }) => [id, args]), [["a", { x: 1 }]])
        assert.strictEqual(ended(events).finishReason, "tool_calls")
      }
      const withoutEnd = whole.filter(({ type }) => type !== "response.completed")
      assert.strictEqual(textOf(yield* decoded([...withoutEnd, "[DONE]"])), "Hello")
    }))

  it.effect("may lack indices, and types where the events are named", () =>
    Effect.gen(function*() {
      const frames = stream([message("m1", "Hello"), call("a", "add", "{\"x\":1}")])
      const events = yield* decoded(frames.map(({ content_index: _part, output_index: _item, ...rest }) => rest))
      assert.strictEqual(textOf(events), "Hello")
      assert.deepStrictEqual(callsOf(events).map(({ id }) => id), ["a"])

      const bare = frames.filter(({ type }) => !type.startsWith("response.output_item"))
      for (const left of [["output_index"], ["output_index", "content_index", "item_id"]]) {
        const text = stream([message("m1", "Hello")]).filter((frame) => bare.some(({ type }) => type === frame.type))
        const read = yield* decoded(
          text.map((frame) => Object.fromEntries(Object.entries(frame).filter(([key]) => !left.includes(key))))
        )
        assert.strictEqual(textOf(read), "Hello")
      }

      const named = frames.map(({ type, ...rest }) => `event: ${type}\ndata: ${JSON.stringify(rest)}\n\n`).join("")
      const read = yield* ask(
        Responses,
        () => new Response(named, { headers: { "content-type": "text/event-stream" } })
      )
      assert.strictEqual(textOf(read), "Hello")
    }))

  it.effect("is malformed when it calls a tool without a name", () =>
    Effect.gen(function*() {
      const error = yield* failure(stream([message("m", "Hi"), call("a", "", "{}")]))
      assert.strictEqual(error.reason, "malformed_response")
    }))

  it.effect("separates the paragraphs of its reasoning", () =>
    Effect.gen(function*() {
      const events = yield* decoded(stream([
        reasoning("rs_1", {
          summary: [{ type: "summary_text", text: "One." }, { type: "summary_text", text: "Two." }]
        }),
        { id: "rs_2", type: "reasoning", summary: [], content: [{ type: "reasoning_text", text: "Three." }] },
        message("m", "Four.")
      ]))
      assert.strictEqual(reasoningOf(events), "One.\n\nTwo.\n\nThree.")
    }))

  it.effect("holds a refusal as text that was filtered", () =>
    Effect.gen(function*() {
      const events = yield* decoded(
        stream([{ ...message("m", ""), content: [{ type: "refusal", refusal: "I won't." }] }])
      )
      assert.strictEqual(textOf(events), "I won't.")
      assert.strictEqual(ended(events).finishReason, "content_filter")
    }))

  it.effect("may be incomplete", () =>
    Effect.gen(function*() {
      const end = (reason: string) =>
        Effect.map(
          decoded(
            stream([message("m", "Hel"), call("a", "add", "{\"x\"")], {
              status: "incomplete",
              incomplete_details: { reason }
            })
          ),
          ended
        )
      assert.deepInclude(yield* end("max_output_tokens"), {
        finishReason: "length",
        rawFinishReason: "max_output_tokens"
      })
      assert.strictEqual((yield* end("content_filter")).finishReason, "content_filter")
      assert.strictEqual((yield* end("whim")).finishReason, "other")
    }))

  it.effect("passes over what it does not know, and keeps what the server did on its own", () =>
    Effect.gen(function*() {
      const search = {
        id: "ws_1",
        type: "web_search_call",
        status: "completed",
        action: { type: "search", query: "q" }
      }
      const annotation = { type: "url_citation", url: "https://allm.example", title: "A" }
      const events = yield* decoded([
        ...stream([search, message("m", "Found.")]).slice(0, -1),
        { type: "response.web_search_call.searching", output_index: 0, item_id: "ws_1" },
        { type: "response.output_text.annotation.added", output_index: 1, content_index: 0, annotation },
        { type: "response.something.new", delta: 1 },
        { type: 7 },
        [],
        ...stream([search, message("m", "Found.")]).slice(-1)
      ])
      assert.strictEqual(textOf(events), "Found.")
      assert.deepStrictEqual(ended(events).metadata, { openai: { annotations: [annotation] } })

      const again = yield* body({ messages: [...hello.messages, ended(events).message!, Message.user("More?")] })
      assert.deepStrictEqual(again.input[1], search)
    }))
})

describe("what the provider wants to see again", () => {
  const history = (items: ReadonlyArray<object>, rest: object = {}) =>
    Effect.map(decoded(stream(items, rest)), (events) => {
      const end = ended(events)
      return end.message ?? Message.assistant(textOf(events), { toolCalls: callsOf(events) })
    })
  const again = (message: Message.AssistantMessage, layer = Responses) =>
    Effect.map(body({ messages: [message, Message.user("And?")] }, layer), ({ input }) => input.slice(0, -1))

  it.effect("is its reasoning, before what it led to", () =>
    Effect.gen(function*() {
      const items = [reasoning("rs_1"), message("m1", "I add."), reasoning("rs_2"), call("a", "add", "{\"x\":1}")]
      const sent = yield* again(yield* history(items, { store: false }))

      assert.deepStrictEqual(sent, [
        reasoning("rs_1"),
        message("m1", "I add."),
        reasoning("rs_2"),
        { id: "fc_a", type: "function_call", call_id: "a", name: "add", arguments: "{\"x\":1}" }
      ])
    }))

  it.effect("travels as JSON, without repeating the message", () =>
    Effect.gen(function*() {
      const made = yield* history([reasoning("rs_1"), message("m1", "I add."), call("a", "add", "{\"x\":1}")])
      const back = JSON.parse(JSON.stringify(made)) as Message.AssistantMessage

      assert.deepStrictEqual(yield* again(back), yield* again(made))
      assert.deepStrictEqual(made.metadata["openai"], {
        items: [
          reasoning("rs_1"),
          { id: "m1", type: "message", length: 6 },
          { id: "fc_a", type: "function_call", call_id: "a" }
        ]
      })
    }))

  it.effect("is the phase of a text", () =>
    Effect.gen(function*() {
      const items = [
        message("m1", "Let me look.", { phase: "commentary" }),
        message("m2", "É 7.", { phase: "final_answer" })
      ]
      assert.deepStrictEqual(yield* again(yield* history(items)), items)
    }))

  it.effect("leaves out reasoning that was neither stored nor sent", () =>
    Effect.gen(function*() {
      const bare = { id: "rs_1", type: "reasoning", summary: [] }
      const items = [bare, message("m1", "Hello")]
      assert.deepStrictEqual(yield* again(yield* history(items, { store: false })), [
        { role: "assistant", content: "Hello" }
      ])
      assert.deepStrictEqual((yield* again(yield* history(items)))[0], bare)
    }))

  it.effect("leaves out what waits for an answer nobody gives, and the reasoning that led to it", () =>
    Effect.gen(function*() {
      const custom = { type: "custom_tool_call", id: "ct_1", call_id: "c1", name: "sql", input: "SELECT 1" }
      const shell = { type: "shell_call", id: "sh_1", call_id: "s1", action: {} }
      const output = { type: "shell_call_output", id: "so_1", call_id: "s1", output: [] }
      const made = yield* history([
        reasoning("rs_0"),
        shell,
        output,
        message("m1", "Query:"),
        reasoning("rs_1"),
        custom,
        reasoning("rs_2")
      ])
      assert.deepStrictEqual(yield* again(made), [reasoning("rs_0"), shell, output, message("m1", "Query:")])
      // Whoever wants to run it finds it.
      const { items } = made.metadata["openai"] as { readonly items: ReadonlyArray<unknown> }
      assert.deepInclude(items, custom)
    }))

  it.effect("follows the message when that was changed", () =>
    Effect.gen(function*() {
      const made = yield* history([
        reasoning("rs_1"),
        message("m1", "I add."),
        reasoning("rs_2"),
        call("a", "add", "{}")
      ])
      assert.deepStrictEqual(yield* again({ ...made, content: "Other words" }), [
        { role: "assistant", content: "Other words" },
        { type: "function_call", call_id: "a", name: "add", arguments: "{}" }
      ])
      assert.deepStrictEqual(yield* again({ ...made, toolCalls: [] }), [reasoning("rs_1"), message("m1", "I add.")])
      const other = ToolCall.make({ id: "z", name: "mul", arguments: {} })
      assert.deepStrictEqual((yield* again({ ...made, toolCalls: [other] })).at(-1), {
        type: "function_call",
        call_id: "z",
        name: "mul",
        arguments: "{}"
      })
    }))

  it.effect("is of no concern to a server of another name", () =>
    Effect.gen(function*() {
      const made = yield* history([reasoning("rs_1"), message("m1", "Hello")])
      const Other = OpenAi.layer({ baseUrl: "http://other.test", name: "lmstudio" })
      assert.deepStrictEqual(yield* again(made, Other), [{ role: "assistant", content: "Hello" }])
    }))

  it.effect("goes back in a loop with tools", () =>
    Effect.gen(function*() {
      const sent: Array<Sent> = []
      const add = Tool.make("add", { description: "Adds", parameters: { x: Schema.Number }, handler: ({ x }) => x + 1 })
      const result = yield* Allm.chat("What is 1 + 1?").pipe(
        Effect.provide(OpenAi.engine({
          baseUrl: "http://responses.test",
          stateless: true,
          model: "reasoner",
          tools: [add]
        })),
        Effect.provide(clientOf(
          (_, turn) =>
            sse(stream(turn === 0 ? [reasoning("rs_1"), call("a", "add", "{\"x\":1}")] : [message("m", "Two.")], {
              store: false
            })),
          sent
        ))
      )
      assert.strictEqual(result.finalResponse.outputText, "Two.")
      assert.deepStrictEqual(sent[1]?.body.input.slice(1), [
        reasoning("rs_1"),
        { id: "fc_a", type: "function_call", call_id: "a", name: "add", arguments: "{\"x\":1}" },
        { type: "function_call_output", call_id: "a", output: "2" }
      ])
    }))
})

describe("an answer in one piece", () => {
  const whole = (output: ReadonlyArray<object>, rest: object = {}) =>
    ask(
      Responses,
      () => Response.json({ id: "resp_1", model: "m", object: "response", status: "completed", output, ...rest })
    )

  it.effect("is read like a stream", () =>
    Effect.gen(function*() {
      const items = [reasoning("rs_1"), message("m1", "Hello"), call("a", "add", "{\"x\":1}")]
      const events = yield* whole(items, { usage: { input_tokens: 1, output_tokens: 2 } })
      assert.deepStrictEqual(EventLaws.problems(events), [])
      assert.deepStrictEqual([reasoningOf(events), textOf(events)], ["Hm.", "Hello"])
      assert.deepStrictEqual(callsOf(events).map(({ id }) => id), ["a"])
      assert.deepInclude(ended(events), {
        finishReason: "tool_calls",
        usage: { inputTokens: 1, outputTokens: 2 }
      })
    }))

  it.effect("may tell of an error, or not be ready", () =>
    Effect.gen(function*() {
      const reason = (rest: object) => Effect.map(Effect.flip(whole([], rest)), (error) => [error.reason, error.detail])
      const error = { code: "server_error", message: "Sorry" }
      assert.deepStrictEqual(yield* reason({ status: "failed", error }), ["provider_unavailable", "Sorry"])
      assert.deepStrictEqual(yield* reason({ status: "queued" }), [
        "unsupported_feature",
        "the response is not ready (queued); leave out `background`"
      ])
      const strange = yield* Effect.flip(ask(Responses, () => Response.json({ hello: "world" })))
      assert.strictEqual(strange.reason, "malformed_response")
    }))
})

describe("errors inside a stream", () => {
  const begun = stream([]).slice(0, 1)

  it.effect("are told as an event, or as a response that failed", () =>
    Effect.gen(function*() {
      const reason = (frame: object) => Effect.map(failure([...begun, frame]), (error) => [error.reason, error.detail])
      const error = { code: "rate_limit_exceeded", message: "Slow down" }

      assert.deepStrictEqual(yield* reason({ type: "error", ...error, param: null }), ["rate_limited", "Slow down"])
      assert.deepStrictEqual(yield* reason({ type: "error", error }), ["rate_limited", "Slow down"])
      assert.deepStrictEqual(yield* reason({ type: "response.failed", response: { status: "failed", error } }), [
        "rate_limited",
        "Slow down"
      ])
      assert.deepStrictEqual(yield* reason({ error: { message: "Bad gateway", code: 502 } }), [
        "provider_unavailable",
        "Bad gateway"
      ])
    }))

  it.effect("before anything was said let the call be repeated", () =>
    Effect.gen(function*() {
      const sent: Array<Sent> = []
      const running = yield* Allm.generate("Hi").pipe(
        Effect.provide(OpenAi.engine({ baseUrl: "http://responses.test", model: "m" })),
        Effect.provide(clientOf(
          (_, index) =>
            sse(
              [
                [...begun, { type: "error", code: "server_error", message: "Sorry" }],
                begun,
                stream([message("m", "Hello")])
              ][index]!
            ),
          sent
        )),
        Effect.fork
      )
      yield* TestClock.adjust("10 seconds")
      const response = yield* Fiber.join(running)

      assert.strictEqual(response.outputText, "Hello")
      assert.lengthOf(sent, 3)
    }))

  it.effect("is what an answer ends in that breaks off", () =>
    Effect.gen(function*() {
      const frames = stream([message("m", "Hello")])
      const error = yield* failure(frames.slice(0, 4))
      assert.deepStrictEqual([error.reason, error.isRetryable], ["network_error", true])
    }))
})
