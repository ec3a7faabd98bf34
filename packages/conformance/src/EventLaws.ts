/**
 * What holds of the events of one whole answer of a model, wherever they come from: an adapter, a recording, a log.
 *
 * @since 0.1.0
 */
import { Adapter, Event, ToolCall } from "@allm/core"
import { render } from "./internal/check.ts"

/**
 * A law: what it says, and what the events of an answer do against it.
 *
 * @since 0.1.0
 * @category models
 */
export interface Law {
  readonly name: string
  readonly problem: (events: ReadonlyArray<Event.Event>) => string | undefined
}

const law = (name: string, problem: Law["problem"]): Law => ({ name, problem })

/**
 * The laws of an answer that came to its end.
 *
 * @since 0.1.0
 * @category constructors
 */
export const laws: ReadonlyArray<Law> = [
  law("ends with exactly one MessageCompleted", (events) => {
    const ends = events.filter(is("MessageCompleted")).length
    if (ends !== 1) return `there are ${ends}`
    const last = events[events.length - 1]
    return last?._tag === "MessageCompleted" ? undefined : `${last?._tag} comes after it`
  }),

  law("begins once, before it says anything", (events) => {
    const spoken = events.filter((event) => event._tag !== "RawChunk")
    const late = spoken.findIndex((event, index) => event._tag === "MessageStarted" && index > 0)
    return late < 0 ? undefined : `MessageStarted comes after ${spoken[late - 1]?._tag}`
  }),

  law("emits only events of a model, well-formed", (events) => {
    const stray = events.find((event) => !Event.isEvent(event) || !Adapter.isAdapterEvent(event))
    return stray === undefined ? undefined : `it emitted ${render(stray)}`
  }),

  law("completes a text with what its deltas said", (events) => {
    const deltas = new Map<string, string>()
    const completed = new Set<string>()
    for (const event of events) {
      if (event._tag !== "TextDelta" && event._tag !== "TextCompleted") continue
      const id = event.id ?? ""
      if (completed.has(id)) return `${event._tag} comes after the text was complete`
      if (event._tag === "TextDelta") deltas.set(id, (deltas.get(id) ?? "") + event.delta)
      else {
        completed.add(id)
        const said = deltas.get(id)
        if (said !== undefined && said !== event.text) {
          return `the deltas said ${render(said)}, the whole is ${render(event.text)}`
        }
      }
    }
    return undefined
  }),

  law("starts each tool call once, under an id and a name of its own", (events) => {
    const started = new Set<string>()
    for (const event of events) {
      if (event._tag !== "ToolCallStarted") continue
      if (event.toolCallId === "") return "a call has no id"
      if (event.toolName === "") return `the call ${event.toolCallId} names no tool`
      if (started.has(event.toolCallId)) return `the call ${event.toolCallId} starts twice`
      started.add(event.toolCallId)
    }
    return undefined
  }),

  law("completes each tool call once, after its start and its deltas", (events) => {
    const open = new Map<string, string>()
    const completed = new Set<string>()
    for (const event of events) {
      if (event._tag === "ToolCallStarted") open.set(event.toolCallId, event.toolName)
      if (event._tag === "ToolCallDelta" && !open.has(event.toolCallId)) {
        return `a delta of ${event.toolCallId} comes before its start or after its end`
      }
      if (event._tag !== "ToolCallCompleted") continue
      const { id, name } = event.toolCall
      if (completed.has(id)) return `the call ${id} is completed twice`
      if (!open.has(id)) return `the call ${id} is completed without a start`
      if (open.get(id) !== name) return `the call ${id} starts as ${open.get(id)} and ends as ${name}`
      open.delete(id)
      completed.add(id)
    }
    const [left] = open.keys()
    return left === undefined ? undefined : `the call ${left} is never completed`
  }),

  law("completes a tool call with the arguments of its deltas, or with their text when that is not JSON", (events) => {
    const deltas = new Map<string, string>()
    for (const event of events) {
      if (event._tag === "ToolCallDelta") {
        deltas.set(event.toolCallId, (deltas.get(event.toolCallId) ?? "") + event.delta)
      }
      if (event._tag !== "ToolCallCompleted") continue
      const problem = argumentsProblem(event.toolCall, deltas.get(event.toolCall.id))
      if (problem !== undefined) return `the call ${event.toolCall.id} ${problem}`
    }
    return undefined
  }),

  law("ends with a message that says what its events said", (events) => {
    const message = events.find(is("MessageCompleted"))?.message
    if (message === undefined) return undefined
    const { text, toolCalls } = said(events)
    const content = typeof message.content === "string"
      ? message.content
      : message.content.map((part) => part.type === "text" ? part.text : "").join("")
    // An answer in one piece may come as the message alone.
    if (text !== "" && content !== text) return `the message says ${render(content)}, the events ${render(text)}`
    const inMessage = message.toolCalls.map(({ id }) => id)
    const inEvents = toolCalls.map(({ id }) => id)
    return inEvents.length === 0 || render(inMessage) === render(inEvents)
      ? undefined
      : `the message has the calls ${render(inMessage)}, the events ${render(inEvents)}`
  })
]

/**
 * Every law that the events of an answer break, and how.
 *
 * @example
 * ```ts
 * import * as EventLaws from "@allm/conformance/EventLaws"
 *
 * assert.deepStrictEqual(EventLaws.problems([{ _tag: "TextDelta", delta: "Hel" }]), [
 *   "ends with exactly one MessageCompleted: there are 0"
 * ])
 * ```
 *
 * @since 0.1.0
 * @category testing
 */
export const problems = (events: ReadonlyArray<Event.Event>): ReadonlyArray<string> =>
  laws.flatMap(({ name, problem }) => {
    const found = problem(events)
    return found === undefined ? [] : [`${name}: ${found}`]
  })

/**
 * What an answer came to.
 *
 * @since 0.1.0
 * @category models
 */
export interface Said {
  readonly text: string
  readonly toolCalls: ReadonlyArray<ToolCall.ToolCall>
  readonly finishReason: string | undefined
}

/**
 * Reads an answer off its events: its text block by block, its calls in the order they started.
 *
 * @example
 * ```ts
 * import * as EventLaws from "@allm/conformance/EventLaws"
 *
 * const { finishReason, text } = EventLaws.said([
 *   { _tag: "TextDelta", delta: "Hel" },
 *   { _tag: "TextDelta", delta: "lo" },
 *   { _tag: "MessageCompleted", finishReason: "stop", metadata: {} }
 * ])
 *
 * assert.deepStrictEqual([text, finishReason], ["Hello", "stop"])
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const said = (events: ReadonlyArray<Event.Event>): Said => {
  const blocks = new Map<string, string>()
  const calls = new Map<string, ToolCall.ToolCall | undefined>()
  let finishReason: string | undefined
  let message: string | undefined
  for (const event of events) {
    switch (event._tag) {
      case "TextDelta":
        blocks.set(event.id ?? "", (blocks.get(event.id ?? "") ?? "") + event.delta)
        break
      case "TextCompleted":
        blocks.set(event.id ?? "", event.text)
        break
      case "ToolCallStarted":
        if (!calls.has(event.toolCallId)) calls.set(event.toolCallId, undefined)
        break
      case "ToolCallCompleted":
        calls.set(event.toolCall.id, event.toolCall)
        break
      case "MessageCompleted":
        finishReason = event.finishReason
        if (typeof event.message?.content === "string") message = event.message.content
        break
    }
  }
  return {
    text: blocks.size === 0 ? message ?? "" : Array.from(blocks.values()).join(""),
    toolCalls: Array.from(calls.values()).flatMap((call) => call === undefined ? [] : [call]),
    finishReason
  }
}

const is =
  <Tag extends Event.Event["_tag"]>(tag: Tag) =>
  (event: Event.Event): event is Extract<Event.Event, { readonly _tag: Tag }> => event._tag === tag

const argumentsProblem = (call: ToolCall.ToolCall, deltas: string | undefined): string | undefined => {
  const hasArguments = "arguments" in call && call.arguments !== undefined
  const raw = deltas ?? call.rawArguments
  if (raw === undefined) return hasArguments ? undefined : "has neither arguments nor their text"
  if (deltas !== undefined && call.rawArguments !== undefined && call.rawArguments !== deltas) {
    return `has the text ${render(call.rawArguments)}, its deltas said ${render(deltas)}`
  }
  const expected = ToolCall.fromRaw({ id: "c", name: "c", rawArguments: raw })
  if (expected.arguments !== undefined) {
    return hasArguments && render(call.arguments) === render(expected.arguments)
      ? undefined
      : `has the arguments ${render(call.arguments)}, its text is ${render(raw)}`
  }
  if (hasArguments) return `has the arguments ${render(call.arguments)}, though its text ${render(raw)} is not JSON`
  return call.rawArguments === raw ? undefined : `lost its text ${render(raw)}`
}
