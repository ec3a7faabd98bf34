/**
 * A response, folded from the events of a model. Total: events in any order, twice, or cut off give what can be known.
 */
import type { AdapterEvent } from "../Event.ts"
import type { AssistantMessage } from "../Message.ts"
import type { FinishReason, Response } from "../Response.ts"
import * as ToolCall from "../ToolCall.ts"
import type { Usage } from "../Usage.ts"
import { summarize } from "./errorSummary.ts"

/** A call under construction. */
interface Draft {
  name: string
  raw: string
  completed: ToolCall.ToolCall | undefined
}

export class ResponseFold {
  /** Something came, so the call must not be repeated. */
  hasStarted = false
  /** The model said that it is done. */
  isComplete = false
  error: unknown
  private id: string | undefined
  private model: string | undefined
  // Most models speak in one block; `blocks` is only needed when there are several.
  private text = ""
  private blocks: Map<string, string> | undefined
  private reasoning = ""
  private drafts: Map<string, Draft> | undefined
  // The id of two calls that are not the same.
  private conflict: string | undefined
  private finishReason: FinishReason | undefined
  private rawFinishReason: string | undefined
  private usage: Usage | undefined
  private given: AssistantMessage | undefined
  private metadata: { readonly [key: string]: unknown } = {}

  /** Tells whether it was an event of a model: what comes from outside may be anything. */
  add(event: AdapterEvent): boolean {
    switch (event?._tag) {
      case "TextDelta":
        if (event.id === undefined && this.blocks === undefined) this.text += event.delta
        else this.block(event.id, this.blockText(event.id) + event.delta)
        break
      case "TextCompleted":
        if (event.id === undefined && this.blocks === undefined) this.text = event.text
        else this.block(event.id, event.text)
        break
      case "ReasoningDelta":
        this.reasoning += event.delta
        break
      case "ToolCallStarted": {
        const draft = this.draft(event.toolCallId)
        if (draft.name === "") draft.name = event.toolName
        break
      }
      case "ToolCallDelta":
        this.draft(event.toolCallId).raw += event.delta
        break
      case "ToolCallCompleted":
        this.complete(event.toolCall)
        break
      case "MessageStarted":
        this.id = event.id ?? this.id
        this.model = event.model ?? this.model
        break
      case "MessageCompleted":
        this.isComplete = true
        this.given = event.message ?? this.given
        this.finishReason = event.finishReason ?? this.finishReason
        this.rawFinishReason = event.rawFinishReason ?? this.rawFinishReason
        this.usage = event.usage ?? this.usage
        if (event.metadata !== undefined) this.metadata = { ...this.metadata, ...event.metadata }
        break
      case "ErrorOccurred":
        this.error = event.error
        this.finishReason = "error"
        break
      case "RawChunk":
        break
      default:
        return false
    }
    this.hasStarted = true
    return true
  }

  private complete(toolCall: ToolCall.ToolCall): void {
    const draft = this.draft(toolCall.id)
    if (draft.completed !== undefined && !isSameCall(draft.completed, toolCall)) this.conflict ??= toolCall.id
    draft.completed = toolCall
  }

  private blockText(id: string | undefined): string {
    return this.blocks?.get(id ?? "") ?? (id === undefined ? this.text : "")
  }

  private block(id: string | undefined, text: string): void {
    this.blocks ??= new Map(this.text === "" ? [] : [["", this.text]])
    this.blocks.set(id ?? "", text)
  }

  private draft(id: string): Draft {
    this.drafts ??= new Map()
    let draft = this.drafts.get(id)
    if (draft === undefined) this.drafts.set(id, draft = { name: "", raw: "", completed: undefined })
    return draft
  }

  private outputText(): string {
    const text = this.blocks === undefined ? this.text : Array.from(this.blocks.values()).join("")
    if (text !== "" || this.given === undefined) return text
    return typeof this.given.content === "string"
      ? this.given.content
      : this.given.content.map((part) => part.type === "text" ? part.text : "").join("")
  }

  private toolCalls(): ReadonlyArray<ToolCall.ToolCall> {
    if (this.drafts === undefined) return this.given?.toolCalls ?? []
    const calls: Array<ToolCall.ToolCall> = []
    for (const [id, draft] of this.drafts) calls.push(draft.completed ?? this.unfinished(id, draft))
    return calls
  }

  // Deltas alone are enough once the message is complete; of a message that was cut, nothing is guessed.
  private unfinished(id: string, { name, raw }: Draft): ToolCall.ToolCall {
    return this.isComplete && id !== "" && name !== ""
      ? ToolCall.fromRaw({ id, name, rawArguments: raw })
      : { id, name, rawArguments: raw, metadata: {} }
  }

  /** The response so far. */
  response(requestId: string | undefined): Response {
    const outputText = this.outputText()
    const toolCalls = this.toolCalls()
    const response: { -readonly [K in keyof Response]: Response[K] } = {
      message: this.message(outputText, toolCalls),
      outputText,
      toolCalls,
      usage: this.usage ?? {},
      metadata: this.responseMetadata()
    }
    if (this.id !== undefined) response.id = this.id
    if (requestId !== undefined) response.requestId = requestId
    if (this.model !== undefined) response.model = this.model
    if (this.finishReason !== undefined) response.finishReason = this.finishReason
    if (this.rawFinishReason !== undefined) response.rawFinishReason = this.rawFinishReason
    return response
  }

  private message(outputText: string, toolCalls: ReadonlyArray<ToolCall.ToolCall>): AssistantMessage {
    const own = this.finishReason === undefined ? {} : { finishReason: this.finishReason }
    const { given } = this
    if (given === undefined) return { role: "assistant", content: outputText, toolCalls, metadata: own }
    // What the provider wants to see again, such as the signature of its reasoning, travels in its message.
    return {
      ...given,
      content: typeof given.content === "string" ? outputText : given.content,
      toolCalls,
      metadata: { ...given.metadata, ...own }
    }
  }

  private responseMetadata(): { readonly [key: string]: unknown } {
    if (this.error === undefined && this.reasoning === "") return this.metadata
    return {
      ...this.metadata,
      ...(this.reasoning === "" ? {} : { reasoning: this.reasoning }),
      ...(this.error === undefined ? {} : { error: summarize(this.error) })
    }
  }

  /** Why the answer cannot be used, if it cannot. */
  get problem(): string | undefined {
    if (!this.isComplete) return "the adapter ended without MessageCompleted"
    const seen = new Set<string>()
    for (const { id, name } of this.toolCalls()) {
      if (id === "") return "a tool call has no id"
      if (name === "") return `the tool call ${JSON.stringify(id)} names no tool`
      if (seen.has(id)) this.conflict ??= id
      seen.add(id)
    }
    return this.conflict === undefined ? undefined : `two tool calls have the id ${JSON.stringify(this.conflict)}`
  }
}

const isSameCall = (a: ToolCall.ToolCall, b: ToolCall.ToolCall): boolean =>
  a.name === b.name && a.rawArguments === b.rawArguments && JSON.stringify(a.arguments) === JSON.stringify(b.arguments)
