import { AdapterChecks, Check } from "@allm/conformance"
import type { ToolCall } from "@allm/core"
import { Adapter, AdapterError, type Event, type Request } from "@allm/core"
import { assert, describe, it } from "@effect/vitest"
import { Effect } from "effect"
import { type Model, type Play, scenarios } from "./model.ts"

type Events = ReadonlyArray<Event.AdapterEvent>

const ending = (end: Play["end"]): Effect.Effect<void, AdapterError.AdapterError> =>
  end === "done" ? Effect.void : end === "silent" ? Effect.never : Effect.fail(end)

const play = (model: Model, request: Request.Request, emit: Adapter.Emit) =>
  Effect.suspend(() => {
    const { end, reads } = model(request)
    return Effect.zipRight(Effect.forEach(reads, emit, { discard: true }), ending(end))
  })

/** An adapter without a fault. */
const sound = (model: Model): Adapter.Service => Adapter.make((request, emit) => play(model, request, emit))

/** An adapter that does something else with what the model says. */
const telling = (change: (events: Events) => Events) => (model: Model): Adapter.Service =>
  Adapter.make((request, emit) => play(model, request, (events) => emit(change(events))))

const replacing = (change: (event: Event.AdapterEvent) => Events) => telling((events) => events.flatMap(change))

const without = (tag: Event.AdapterEvent["_tag"]) => replacing((event) => event._tag === tag ? [] : [event])
const twice = (tag: Event.AdapterEvent["_tag"]) => replacing((event) => event._tag === tag ? [event, event] : [event])

const completing = (change: (call: ToolCall.ToolCall) => ToolCall.ToolCall) =>
  replacing((event) => event._tag === "ToolCallCompleted" ? [{ ...event, toolCall: change(event.toolCall) }] : [event])

const failing =
  (change: (error: AdapterError.AdapterError) => Effect.Effect<never, AdapterError.AdapterError>) =>
  (model: Model): Adapter.Service =>
    Adapter.make((request, emit) => Effect.catchAll(play(model, request, emit), change))

type Answer = Effect.Effect<void, AdapterError.AdapterError>

/** An adapter of a model that counts its connections. */
const connected = (generate: (answer: Answer) => Answer, { closes } = { closes: true }) => (model: Model) =>
  Effect.sync(() => {
    let open = 0
    const adapter = Adapter.make((request, emit) =>
      generate(
        Effect.acquireUseRelease(
          Effect.sync(() => void open++),
          () => play(model, request, emit),
          () => Effect.sync(() => void (closes && open--))
        )
      )
    )
    return { adapter, open: Effect.sync(() => open) }
  })

const oneEnd = "ends with exactly one MessageCompleted"
const beginning = "begins once, before it says anything"
const modelEvents = "emits only events of a model, well-formed"
const textOfDeltas = "completes a text with what its deltas said"
const starts = "starts each tool call once, under an id and a name of its own"
const completes = "completes each tool call once, after its start and its deltas"
const argumentsOfDeltas =
  "completes a tool call with the arguments of its deltas, or with their text when that is not JSON"
const wholeMessage = "ends with a message that says what its events said"
const text = "says what the model said"
const calls = "calls what the model called"
const brokenText = "keeps broken arguments as text"
const stopped = "tells that the model stopped"
const waitsForCalls = "tells that the model waits for its calls"
const asStream = "gives a Stream the same answer"
const asEngine = "gives an engine the same answer"
const repeats = "asks when it is run, and again when it is run again"
const backPressure = "waits for each emit before the next, and for the last before it ends"
const crashOfEmit = "lets a crash of emit pass"
const request = "leaves the request as it was"
const apart = "keeps calls at the same time apart"
const cut = "does not pass a cut answer off as a whole one"
const silence = "emits nothing after it was interrupted"
const wait = "tells how long to wait"
const interruptions = [
  "can be interrupted before the model says anything",
  "can be interrupted while the model is silent"
]
const letsGo = "lets go of the model when it is interrupted"
const letsGoOfStream = "lets go of the model when a Stream is no longer read"
const failures = ["rate_limited", "authentication_failed", "invalid_request", "provider_unavailable"].map((reason) =>
  `fails with ${reason} before any event`
)
const fields = [
  "tools",
  "toolChoice auto",
  "toolChoice none",
  "toolChoice required",
  "toolChoice of one tool",
  "responseFormat text",
  "responseFormat json_object",
  "responseFormat json_schema",
  "temperature and maxTokens",
  "images",
  "a history of calls and results"
].map((field) => `takes ${field}, or refuses with a typed error`)

/** What is wrong with an adapter, the adapter, and the checks that have to notice. */
type Broken = readonly [
  fault: string,
  adapterOf: (model: Model) => AdapterChecks.Subject,
  noticed: ReadonlyArray<string>
]

const broken: ReadonlyArray<Broken> = [
  ["has no name", (model) => ({ ...sound(model), name: "" }), ["has a name"]],
  ["never says that it is done", without("MessageCompleted"), [stopped, waitsForCalls, oneEnd, asEngine]],
  ["says twice that it is done", twice("MessageCompleted"), [oneEnd]],
  [
    "goes on after it was done",
    replacing((event) => event._tag === "MessageCompleted" ? [event, { _tag: "RawChunk", chunk: "[DONE]" }] : [event]),
    [oneEnd]
  ],
  ["begins twice", twice("MessageStarted"), [beginning]],
  [
    "speaks for the tools",
    // What the types forbid, plain JavaScript may do.
    replacing((event) =>
      event._tag === "MessageStarted"
        ? [event, { _tag: "ToolProgress", toolCallId: "c", toolName: "t", value: 1 } as unknown as Event.AdapterEvent]
        : [event]
    ),
    [modelEvents]
  ],
  [
    "emits half an event",
    replacing((event) =>
      event._tag === "MessageCompleted" ? [event, { _tag: "RawChunk" } as Event.AdapterEvent].reverse() : [event]
    ),
    [modelEvents]
  ],
  [
    "completes another text",
    replacing((event) => event._tag === "TextCompleted" ? [{ ...event, text: event.text.trim() + "!" }] : [event]),
    [text, textOfDeltas, asEngine, repeats, backPressure, apart, ...fields]
  ],
  [
    "loses a piece",
    replacing((event) =>
      event._tag === "TextDelta" && event.delta === ", " ? [] : event._tag === "TextCompleted" ? [] : [event]
    ),
    [text, asEngine, repeats, cut, ...fields, interruptions[1]!, letsGo]
  ],
  [
    "never tells why it stopped",
    replacing((event) => {
      if (event._tag !== "MessageCompleted") return [event]
      const { finishReason: _, ...rest } = event
      return [rest]
    }),
    [stopped, waitsForCalls, asEngine]
  ],
  ["does not start its calls", without("ToolCallStarted"), [completes]],
  ["starts its calls twice", twice("ToolCallStarted"), [starts]],
  ["does not complete its calls", without("ToolCallCompleted"), [calls, brokenText, completes]],
  ["completes its calls twice", twice("ToolCallCompleted"), [completes]],
  [
    "gives all calls one id",
    telling((events) =>
      events.map((event): Event.AdapterEvent =>
        event._tag === "ToolCallCompleted"
          ? { ...event, toolCall: { ...event.toolCall, id: "call" } }
          : event._tag === "ToolCallStarted" || event._tag === "ToolCallDelta"
          ? { ...event, toolCallId: "call" }
          : event
      )
    ),
    [calls, starts, completes, argumentsOfDeltas]
  ],
  ["completes calls as another tool", completing((call) => ({ ...call, name: "other" })), [
    calls,
    brokenText,
    completes
  ]],
  [
    "completes calls with other arguments",
    completing((call) => call.arguments === undefined ? call : { ...call, arguments: { city: "Paris" } }),
    [calls, argumentsOfDeltas]
  ],
  [
    "takes broken arguments for none",
    completing((call) => ({ ...call, arguments: call.arguments ?? {} })),
    [brokenText, argumentsOfDeltas]
  ],
  [
    "forgets the text of broken arguments",
    completing(({ rawArguments: _text, ...call }) => call),
    [brokenText, argumentsOfDeltas]
  ],
  [
    "completes another message",
    replacing((event) =>
      event._tag === "MessageCompleted"
        ? [{ ...event, message: { role: "assistant", content: "?", toolCalls: [], metadata: {} } }]
        : [event]
    ),
    [wholeMessage]
  ],
  [
    "asks at once, whether it is run or not",
    (model) => Adapter.make((request, emit) => Effect.flatten(Effect.runFork(play(model, request, emit)).await)),
    [repeats, silence]
  ],
  [
    "asks only once",
    (model) =>
      Adapter.make((request, emit) => {
        let hasRun = false
        return Effect.suspend(() => {
          if (hasRun) return Effect.void
          hasRun = true
          return play(model, request, emit)
        })
      }),
    [repeats]
  ],
  [
    "answers otherwise when it is asked again",
    (model) => {
      let asked = 0
      return Adapter.make((request, emit) =>
        Effect.suspend(() =>
          ++asked === 1
            ? play(model, request, emit)
            : play(
              () => ({ reads: [[{ _tag: "MessageCompleted", finishReason: "stop", metadata: {} }]], end: "done" }),
              request,
              emit
            )
        )
      )
    },
    [asStream, repeats, apart]
  ],
  [
    "does not wait for its emits",
    (model) =>
      Adapter.make((request, emit) => play(model, request, (events) => Effect.asVoid(Effect.forkDaemon(emit(events))))),
    [
      text,
      calls,
      brokenText,
      stopped,
      waitsForCalls,
      oneEnd,
      asEngine,
      repeats,
      backPressure,
      crashOfEmit,
      cut,
      ...fields
    ]
  ],
  [
    "emits all at the same time",
    (model) =>
      Adapter.make((request, emit) =>
        Effect.suspend(() => {
          const { end, reads } = model(request)
          return Effect.zipRight(Effect.forEach(reads, emit, { concurrency: "unbounded", discard: true }), ending(end))
        })
      ),
    [backPressure]
  ],
  [
    "survives a crash of emit",
    (model) =>
      Adapter.make((request, emit) =>
        play(model, request, (events) => Effect.catchAllDefect(emit(events), () => Effect.void))
      ),
    [crashOfEmit]
  ],
  [
    "adds to the request",
    (model) =>
      Adapter.make((request, emit) => {
        const messages = request.messages as Array<Request.Request["messages"][number]>
        if (request.tools.length > 0) messages.push({ role: "system", content: "Use your tools.", metadata: {} })
        return play(model, request, emit)
      }),
    [request]
  ],
  [
    "mixes calls at the same time",
    (model) => {
      let last: Request.Request | undefined
      return Adapter.make((request, emit) =>
        Effect.zipRight(
          Effect.zipRight(
            Effect.sync(() => {
              last = request
            }),
            Effect.yieldNow()
          ),
          Effect.suspend(() => play(model, last!, emit))
        )
      )
    },
    [apart]
  ],
  [
    "crashes on a tool choice",
    (model) =>
      Adapter.make((request, emit) =>
        request.toolChoice === undefined ? play(model, request, emit) : Effect.die(new Error("not implemented"))
      ),
    fields.slice(1, 5)
  ],
  [
    "refuses images as if the network were down",
    (model) =>
      Adapter.make((request, emit) =>
        request.messages.every((message) => typeof message.content === "string")
          ? play(model, request, emit)
          : Effect.fail(new AdapterError.AdapterError({ reason: "network_error" }))
      ),
    [fields[9]!]
  ],
  ["crashes instead of failing", failing((error) => Effect.die(error)), [...failures, wait, cut]],
  [
    "fails with an error of its own",
    failing(() => Effect.fail(new Error("no") as AdapterError.AdapterError)),
    [...failures, wait, cut]
  ],
  [
    "does not know why it fails",
    failing(() => Effect.fail(new AdapterError.AdapterError({ reason: "unknown" }))),
    [...failures, wait]
  ],
  [
    "begins before it fails",
    (model) =>
      Adapter.make((request, emit) =>
        Effect.zipRight(emit([{ _tag: "RawChunk", chunk: "HTTP/1.1" }]), play(model, request, emit))
      ),
    failures
  ],
  [
    "takes every failure for an end",
    (model) =>
      Adapter.make((request, emit) =>
        Effect.catchAll(
          play(model, request, emit),
          () => emit([{ _tag: "MessageCompleted", finishReason: "stop", metadata: {} }])
        )
      ),
    [...failures, wait, cut]
  ],
  [
    "cannot be interrupted",
    (model) => Adapter.make((request, emit) => Effect.uninterruptible(play(model, request, emit))),
    [...interruptions, letsGo, letsGoOfStream, silence]
  ],
  [
    "goes on in the background",
    connected((answer) => Effect.flatMap(Effect.forkDaemon(answer), (fiber) => Effect.flatten(fiber.await))),
    [letsGo, letsGoOfStream, silence]
  ],
  [
    "keeps the connection",
    connected((answer) => answer, { closes: false }),
    [letsGo, letsGoOfStream]
  ]
]

const noticedBy = (adapterOf: Broken[1]) =>
  Effect.map(
    Check.violations(AdapterChecks.make({ scenarios: scenarios(adapterOf), limit: "1 second" }), {
      concurrency: "unbounded"
    }),
    (violations) => violations.map((violation) => violation.check)
  )

describe("AdapterChecks", () => {
  it.effect("find nothing wrong with a sound adapter", () =>
    Effect.gen(function*() {
      assert.deepStrictEqual(yield* noticedBy(sound), [])
    }))

  for (const [fault, adapterOf, noticed] of broken) {
    it.effect(`notice an adapter that ${fault}`, () =>
      Effect.gen(function*() {
        const found = yield* noticedBy(adapterOf)

        // A fault that nobody notices is no proof.
        assert.isAbove(found.length, 0)
        assert.deepStrictEqual([...found].sort(), [...noticed].sort())
      }))
  }

  it.effect("are each needed by a fault", () =>
    Effect.sync(() => {
      const names = AdapterChecks.make({ scenarios: scenarios(sound) }).map((check) => check.name)

      assert.deepStrictEqual(names.filter((name) => broken.every(([, , noticed]) => !noticed.includes(name))), [])
    }))
})
