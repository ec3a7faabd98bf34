import type { AdapterChecks } from "@allm/conformance"
import { AdapterError, type Event, type Request, ToolCall } from "@allm/core"

/** What a model does when it is asked: events read by read, and how it ends. */
export interface Play {
  readonly reads: ReadonlyArray<ReadonlyArray<Event.AdapterEvent>>
  readonly end: "done" | "silent" | AdapterError.AdapterError
}

export type Model = (request: Request.Request) => Play

type Reads = Play["reads"]

const begin: Reads = [[{ _tag: "MessageStarted" }]]

const deltas = (pieces: ReadonlyArray<string>): Reads => pieces.map((delta) => [{ _tag: "TextDelta", delta }])

const end = (finishReason: "stop" | "tool_calls"): Event.AdapterEvent => ({
  _tag: "MessageCompleted",
  finishReason,
  metadata: {}
})

const says = (pieces: ReadonlyArray<string>): Play => ({
  reads: [...begin, ...deltas(pieces), [{ _tag: "TextCompleted", text: pieces.join("") }, end("stop")]],
  end: "done"
})

const makesCalls = (calls: ReadonlyArray<AdapterChecks.ScriptedCall>): Play => ({
  reads: [
    ...begin,
    calls.map(({ id, name }) => ({ _tag: "ToolCallStarted", toolCallId: id, toolName: name })),
    // The calls grow side by side, as models write them.
    ...[0, 1, 2, 3].map((i): Reads[number] =>
      calls.flatMap(({ id, pieces }) =>
        pieces[i] === undefined ? [] : [{ _tag: "ToolCallDelta", toolCallId: id, delta: pieces[i] }]
      )
    ),
    [
      ...calls.map(({ id, name, pieces }): Event.AdapterEvent => ({
        _tag: "ToolCallCompleted",
        toolCall: ToolCall.fromRaw({ id, name, rawArguments: pieces.join("") })
      })),
      end("tool_calls")
    ]
  ],
  end: "done"
})

export const lastUserText = (request: Request.Request): string => {
  const content = request.messages.filter((message) => message.role === "user").at(-1)?.content
  return typeof content === "string" ? content : ""
}

/** Every scenario, for whatever an adapter can be made of a model with. */
export const scenarios = <E>(
  adapterOf: (model: Model) => AdapterChecks.Subject<E>
): AdapterChecks.Scenarios<E> & Required<AdapterChecks.Scenarios<E>> => ({
  text: (pieces) => adapterOf(() => says(pieces)),
  echo: () => adapterOf((request) => says(lastUserText(request).split(/(?= )/))),
  toolCalls: (calls) => adapterOf(() => makesCalls(calls)),
  brokenArguments: (call) => adapterOf(() => makesCalls([call])),
  failure: (failure) => adapterOf(() => ({ reads: [], end: new AdapterError.AdapterError(failure) })),
  cut: (pieces) =>
    adapterOf(() => ({
      reads: [...begin, ...deltas(pieces)],
      end: new AdapterError.AdapterError({ reason: "network_error" })
    })),
  slow: (pieces) => adapterOf(() => ({ reads: pieces.length === 0 ? [] : deltas(pieces), end: "silent" }))
})
