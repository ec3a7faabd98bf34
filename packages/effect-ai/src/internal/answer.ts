/**
 * One answer of their model: parts in, events out. Total: what it does not know passes as it is.
 */
import { AdapterError, type Event, ToolCall } from "@allm/core"
import type * as Tool from "@effect/ai/Tool"
import * as Option from "effect/Option"
import * as Assistant from "./assistant.ts"
import { fromErrorPart } from "./errors.ts"
import { fromReason, fromUsage, ownOf } from "./finish.ts"
import { compact, isEmpty, isObject, type JsonObject, print, project, projectObject } from "./json.ts"
import { type Options, someOptions, toolCall } from "./kept.ts"

/** A piece that may still grow. */
type Draft =
  | { readonly type: "text" | "reasoning"; readonly id: string; text: string; options: Options; isOver: boolean }
  | {
    readonly type: "call"
    readonly id: string
    readonly name: string
    raw: string
    call: ToolCall.ToolCall | undefined
  }
  | { readonly type: "whole"; readonly piece: Assistant.Piece }

type Spoken = Extract<Draft, { readonly type: "text" | "reasoning" }>
type Called = Extract<Draft, { readonly type: "call" }>

export class Answer {
  private readonly provider: string
  private readonly tools: ReadonlyArray<Tool.Any>
  private readonly drafts: Array<Draft> = []
  private readonly spoken = new Map<string, Spoken>()
  private readonly called = new Map<string, Called>()
  private readonly sources: Array<unknown> = []
  // Kept until the model says something: before that, a call that fails may be repeated.
  private held: Array<Event.AdapterEvent> = []
  private hasSpoken = false
  private hasErred = false
  private id: string | undefined
  private model: string | undefined
  private finish: JsonObject | undefined
  private out: Array<Event.AdapterEvent> = []

  constructor(provider: string, tools: ReadonlyArray<Tool.Any>) {
    this.provider = provider
    this.tools = tools
  }

  /** The model said that it is done. */
  get isFinished(): boolean {
    return this.finish !== undefined
  }

  /** The events since the last time. */
  taken(): ReadonlyArray<Event.AdapterEvent> {
    const { out } = this
    this.out = []
    return out
  }

  /** Reads a part, decoded or not. Gives the error that ends the answer, if it does. */
  add(part: unknown): AdapterError.AdapterError | undefined {
    if (!isObject(part)) return undefined
    const id = textOf(part["id"])
    switch (part["type"]) {
      case "text-start":
      case "reasoning-start":
        this.grow(kindOf(part["type"]), id, "", part["metadata"])
        return undefined
      case "text-delta":
      case "reasoning-delta":
        this.grow(kindOf(part["type"]), id, textOf(part["delta"]), part["metadata"])
        return undefined
      case "text-end":
      case "reasoning-end":
        this.endOf(this.grow(kindOf(part["type"]), id, "", part["metadata"]))
        return undefined
      case "text":
      case "reasoning":
        this.endOf(this.grow(part["type"], `${this.drafts.length}`, textOf(part["text"]), part["metadata"]))
        return undefined
      case "tool-params-start":
        return part["providerExecuted"] === true ? this.pass(part) : this.start(id, this.nameOf(part))
      case "tool-params-delta":
        return this.argue(id, textOf(part["delta"]), part)
      case "tool-params-end":
        return undefined
      case "tool-call":
        return part["providerExecuted"] === true ? this.provided(part) : this.complete(part)
      case "tool-result":
        return this.provided(part)
      case "file":
        return this.file(part)
      case "source":
        this.sources.push(project(part))
        return this.pass(part)
      case "response-metadata":
        this.id ??= optionOf(part["id"])
        this.model ??= optionOf(part["modelId"])
        return undefined
      case "error":
        return this.err(fromErrorPart(this.provider, part["error"]))
      case "finish":
        this.finish = part
        return undefined
      default:
        return this.pass(part)
    }
  }

  private say(event: Event.AdapterEvent): void {
    if (!this.hasSpoken) {
      this.hasSpoken = true
      this.out.push({ _tag: "MessageStarted", ...compact({ id: this.id, model: this.model }) }, ...this.held)
      this.held = []
    }
    this.out.push(event)
  }

  private pass(part: unknown): undefined {
    const event: Event.AdapterEvent = { _tag: "RawChunk", chunk: part }
    if (this.hasSpoken) this.out.push(event)
    else this.held.push(event)
  }

  private err(error: AdapterError.AdapterError): AdapterError.AdapterError | undefined {
    if (!this.hasSpoken) return error
    this.hasErred = true
    this.say({ _tag: "ErrorOccurred", error })
    return undefined
  }

  private malformed(detail: string): AdapterError.AdapterError {
    return new AdapterError.AdapterError({ reason: "malformed_response", provider: this.provider, detail })
  }

  private grow(kind: Spoken["type"], id: string, text: string, metadata: unknown): Spoken {
    let draft = this.spoken.get(`${kind} ${id}`)
    if (draft === undefined || draft.isOver) {
      // A name that is used again means another piece.
      const own = draft === undefined ? id : `${id}#${this.drafts.length}`
      draft = { type: kind, id: own, text: "", options: {}, isOver: false }
      this.spoken.set(`${kind} ${id}`, draft)
      this.drafts.push(draft)
    }
    draft.text += text
    draft.options = merged(draft.options, metadata)
    if (text !== "") this.say({ _tag: kind === "text" ? "TextDelta" : "ReasoningDelta", id: draft.id, delta: text })
    return draft
  }

  private endOf(draft: Spoken): void {
    if (draft.isOver) return
    draft.isOver = true
    if (draft.type === "text" && draft.text !== "") {
      this.say({ _tag: "TextCompleted", id: draft.id, text: draft.text })
    }
  }

  /** The name by which this side knows a tool; a provider may have a name of its own for what it defined. */
  private nameOf(part: JsonObject): string {
    const name = textOf(part["name"])
    const own = this.tools.find((tool) => (tool as { readonly providerName?: string }).providerName === name)
    return own?.name ?? name
  }

  private start(id: string, name: string): AdapterError.AdapterError | undefined {
    if (id === "" || name === "") return this.malformed(`a tool call has no ${id === "" ? "id" : "name"}`)
    if (this.called.has(id)) return undefined
    const draft: Called = { type: "call", id, name, raw: "", call: undefined }
    this.called.set(id, draft)
    this.drafts.push(draft)
    this.say({ _tag: "ToolCallStarted", toolCallId: id, toolName: name })
    return undefined
  }

  private argue(id: string, delta: string, part: JsonObject): undefined {
    const draft = this.called.get(id)
    if (draft === undefined || draft.call !== undefined) return this.pass(part)
    draft.raw += delta
    this.say({ _tag: "ToolCallDelta", toolCallId: id, delta })
  }

  private complete(part: JsonObject): AdapterError.AdapterError | undefined {
    const id = textOf(part["id"])
    const name = textOf(part["name"])
    const problem = this.start(id, name)
    if (problem !== undefined) return problem
    const draft = this.called.get(id)!
    const options = { ...(isObject(part["metadata"]) ? part["metadata"] as Options : {}) }
    const made = toolCall({ id, name: draft.name, params: project(part["params"]) }, options)
    const call = made.arguments !== undefined && draft.raw !== "" ? { ...made, rawArguments: draft.raw } : made
    if (draft.call === undefined) return this.settle(draft, call)
    return print(draft.call.arguments) === print(call.arguments) && draft.call.name === name
      ? undefined
      : this.malformed(`two tool calls have the id ${JSON.stringify(id)}`)
  }

  private settle(draft: Called, toolCall: ToolCall.ToolCall): undefined {
    draft.call = toolCall
    this.say({ _tag: "ToolCallCompleted", toolCall })
  }

  private provided(part: JsonObject): undefined {
    const common = {
      id: textOf(part["id"]),
      name: textOf(part["name"]),
      options: someOptions(part["metadata"])
    }
    const piece: Assistant.Piece = part["type"] === "tool-call"
      ? compact({ type: "provider-call" as const, ...common, params: project(part["params"]) ?? {} })
      : compact({
        type: "provider-result" as const,
        ...common,
        result: project(part["encodedResult"] ?? part["result"]) ?? null,
        isFailure: part["isFailure"] === true
      })
    this.drafts.push({ type: "whole", piece })
    return this.pass(part)
  }

  private file(part: JsonObject): undefined {
    const { data, mediaType } = part
    if (data instanceof Uint8Array || typeof data === "string") {
      const file = { mediaType: textOf(mediaType), data }
      const options = merged({}, part["metadata"])
      this.drafts.push({ type: "whole", piece: { type: "file", file, options } })
    }
    return this.pass(part)
  }

  /** Whether calls are all that is missing: the answer was refused for what stands in one of them. */
  get hasUsableCalls(): boolean {
    return this.called.size > 0 &&
      Array.from(this.called.values()).some(({ call, id, name, raw }) =>
        call !== undefined || ToolCall.fromRaw({ id, name, rawArguments: raw }).arguments === undefined
      )
  }

  /** Ends an answer that their side refused to read on, with the calls it made so far. */
  cutShort(): void {
    this.finish = { type: "finish", reason: "tool-calls" }
  }

  /** Completes the answer. Gives the error when it cannot be taken for a whole one. */
  end(): AdapterError.AdapterError | undefined {
    const { finish } = this
    if (finish === undefined) {
      if (this.hasErred) return undefined
      return this.malformed(this.hasSpoken ? "the answer broke off: no finish part came" : "the model said nothing")
    }
    const own = ownOf(finish["metadata"])
    const usage = own?.usage ?? fromUsage(finish["usage"])
    // Some providers end a failed answer as if it were an empty one.
    if (own === undefined && !hasTokens(usage) && this.drafts.every(isEmptyDraft)) {
      return this.malformed("the model said nothing, and the provider counted nothing")
    }
    for (const draft of this.drafts) this.close(draft)
    const reason = textOf(finish["reason"])
    const finishReason = own === undefined
      ? this.hasErred && reason !== "length" ? "error" : fromReason(reason, this.called.size > 0)
      : own.finishReason
    this.say({
      _tag: "MessageCompleted",
      message: Assistant.fromPieces(this.drafts.map(pieceOf), { name: own?.name, metadata: own?.message ?? {} }),
      ...compact({ finishReason, rawFinishReason: own === undefined ? reason : own.rawFinishReason }),
      ...(own !== undefined && own.usage === undefined ? {} : { usage }),
      metadata: own === undefined ? this.told(finish["metadata"]) : own.metadata ?? {}
    })
    return undefined
  }

  private told(metadata: unknown): JsonObject {
    const told = compact({
      metadata: isEmpty(projectObject(metadata)) ? undefined : projectObject(metadata),
      sources: this.sources.length === 0 ? undefined : this.sources
    })
    return isEmpty(told) ? {} : { effectAi: told }
  }

  private close(draft: Draft): void {
    if (draft.type === "text") this.endOf(draft)
    if (draft.type === "call" && draft.call === undefined) {
      const { id, name, raw } = draft
      this.settle(draft, ToolCall.fromRaw({ id, name, rawArguments: raw }))
    }
  }
}

const kindOf = (type: string): Spoken["type"] => type.startsWith("text") ? "text" : "reasoning"

const textOf = (value: unknown): string => typeof value === "string" ? value : ""

const optionOf = (value: unknown): string | undefined => {
  const found: unknown = Option.isOption(value) ? Option.getOrUndefined(value) : value
  return typeof found === "string" && found !== "" ? found : undefined
}

/** What a provider tells of a part comes in pieces too. */
const merged = (options: Options, metadata: unknown): Options => {
  const told = isObject(metadata) && !isEmpty(metadata) ? someOptions(metadata) : undefined
  if (told === undefined) return options
  const all: Record<string, JsonObject | undefined> = { ...options }
  for (const [provider, members] of Object.entries(told)) all[provider] = { ...all[provider], ...members }
  return all
}

const hasTokens = ({ inputTokens, outputTokens }: { readonly inputTokens?: number; readonly outputTokens?: number }) =>
  inputTokens !== undefined || outputTokens !== undefined

const isEmptyDraft = (draft: Draft): boolean =>
  (draft.type === "text" || draft.type === "reasoning") && draft.text === ""

const pieceOf = (draft: Draft): Assistant.Piece => {
  switch (draft.type) {
    case "text":
    case "reasoning":
      return { type: draft.type, text: draft.text, options: draft.options }
    case "call":
      return { type: "call", call: draft.call! }
    case "whole":
      return draft.piece
  }
}
