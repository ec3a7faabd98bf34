/**
 * A conversation as the API wants it: instructions apart, turns that alternate, the answers of tools first, and whatever
 * the model wants to see again in its place.
 */
import { Message, type ToolCall } from "@allm/core"
import { isObject, type JsonObject, listOf, objectOf, parsed, textOf } from "./json.ts"

export interface Block extends JsonObject {
  readonly type: string
}

export interface Turn {
  readonly role: "user" | "assistant"
  readonly content: ReadonlyArray<Block>
}

/** Where messages and tools keep what only Anthropic understands. */
export const provider = "anthropic"

export const ownMetadata = (metadata: JsonObject): JsonObject => objectOf(metadata[provider])

/** What stands in for a block whose content the message already holds. */
export type Kept = Block

export const cacheControlOf = (value: unknown): JsonObject | undefined => {
  if (value === true) return { type: "ephemeral" }
  if (typeof value === "string") return { type: "ephemeral", ttl: value }
  return isObject(value) ? { type: "ephemeral", ...value } : undefined
}

export class Transcript {
  readonly system: Array<Block> = []
  /** Why it cannot be written, if it cannot. */
  problem: string | undefined
  private readonly all: Array<Turn> = []

  constructor(messages: ReadonlyArray<Message.Message>) {
    for (const message of messages) this.add(message)
  }

  get turns(): ReadonlyArray<Turn> {
    const merged = alternating(this.all)
    const resolved = new Set(merged.flatMap(({ content }) => content.map((block) => block["tool_use_id"])))
    const lastAnswer = merged.map(({ role }) => role).lastIndexOf("assistant")
    return alternating(
      merged.map((turn, index) =>
        turn.role === "user"
          ? { ...turn, content: resultsFirst(turn.content) }
          : answer(turn, {
            resolved,
            isLatest: index === lastAnswer,
            isLast: index === merged.length - 1
          })
      )
    )
  }

  private add(message: Message.Message): void {
    const blocks = this.blocks(message)
    const marked = withCacheControl(blocks, cacheControlOf(ownMetadata(message.metadata)["cacheControl"]))
    if (message.role === "system") this.system.push(...marked)
    else this.all.push({ role: message.role === "assistant" ? "assistant" : "user", content: marked })
  }

  private blocks(message: Message.Message): ReadonlyArray<Block> {
    switch (message.role) {
      case "user":
        return this.parts(message.content)
      case "tool":
        return [toolResult(message)]
      case "assistant":
        this.onlyText(message)
        return said(message)
      case "system":
        this.onlyText(message)
        return this.parts(message.content)
    }
  }

  private onlyText({ content, role }: Message.Message): void {
    if (typeof content !== "string" && content.some(({ type }) => type !== "text")) {
      this.problem ??= `a ${role} message holds text only; put the image into a user message`
    }
  }

  private parts(content: Message.Content): ReadonlyArray<Block> {
    if (typeof content === "string") return textBlocks(content)
    return content.flatMap((part) => part.type === "text" ? textBlocks(part.text) : this.image(part.source))
  }

  private image(source: Message.ImageSource): ReadonlyArray<Block> {
    // An address may hold the data itself.
    const given = source.type === "url" ? Message.image(source.url).source : source
    if (given.type === "url") return [{ type: "image", source: { type: "url", url: given.url } }]
    const mediaType = given.mediaType === "image/jpg" ? "image/jpeg" : given.mediaType
    const type = blockTypes.get(mediaType)
    if (type === undefined) {
      this.problem ??= `an image of the type ${given.mediaType} cannot be read; send ${
        [...blockTypes.keys()].join(", ")
      }`
      return []
    }
    return [{ type, source: { type: "base64", media_type: mediaType, data: given.data } }]
  }
}

const blockTypes: ReadonlyMap<string, string> = new Map([
  ["image/jpeg", "image"],
  ["image/png", "image"],
  ["image/gif", "image"],
  ["image/webp", "image"],
  ["application/pdf", "document"]
])

// The API refuses texts in which there is nothing to read.
const textBlocks = (text: string, rest: JsonObject = {}): ReadonlyArray<Block> =>
  text.trim() === "" ? [] : [{ ...rest, type: "text", text }]

/** Joins what one side said in a row, and leaves out who said nothing. */
const alternating = (turns: ReadonlyArray<Turn>): ReadonlyArray<Turn> => {
  const merged: Array<Turn> = []
  for (const turn of turns) {
    if (turn.content.length === 0) continue
    const last = merged.at(-1)
    if (last?.role === turn.role) merged[merged.length - 1] = { ...last, content: [...last.content, ...turn.content] }
    else merged.push(turn)
  }
  return merged
}

const isThinking = ({ type }: Block): boolean => type === "thinking" || type === "redacted_thinking"

const withCacheControl = (
  blocks: ReadonlyArray<Block>,
  control: JsonObject | undefined
): ReadonlyArray<Block> => {
  if (control === undefined) return blocks
  const last = blocks.map(isThinking).lastIndexOf(false)
  return blocks.map((block, index) => index === last ? { ...block, cache_control: control } : block)
}

const toolResult = ({ content, isError, toolCallId }: Message.ToolMessage): Block => {
  // A failure has to say something.
  const text = content.trim() === "" ? isError ? "error" : undefined : content
  return {
    type: "tool_result",
    tool_use_id: wireId(toolCallId),
    ...(text === undefined ? {} : { content: text }),
    ...(isError ? { is_error: true } : {})
  }
}

const resultsFirst = (content: ReadonlyArray<Block>): ReadonlyArray<Block> => {
  const isResult = ({ type }: Block): boolean => type === "tool_result"
  return [...content.filter(isResult), ...content.filter((block) => !isResult(block))]
}

/** Ids of other providers may hold what the API does not let pass. */
const wireId = (id: string): string =>
  id.replaceAll(/[^A-Za-z0-9_-]/g, (char) => `_${char.codePointAt(0)!.toString(16)}`)

const toolUse = (call: ToolCall.ToolCall, rest: JsonObject = {}): Block => ({
  ...rest,
  type: "tool_use",
  id: wireId(call.id),
  name: call.name,
  // Only objects are let pass. A call that was none has its answer already, which says so.
  input: objectOf(call.arguments ?? parsed(call.rawArguments ?? ""))
})

/** The blocks of what the model said: as it said them where that was kept, else its text and its calls. */
const said = (message: Message.AssistantMessage): ReadonlyArray<Block> => {
  const text = Message.toText(message)
  const kept = listOf(ownMetadata(message.metadata)["content"]).filter(isBlock)
  if (kept.length === 0) return [...textBlocks(text), ...message.toolCalls.map((call) => toolUse(call))]
  const lengths = kept.map((block) => block.type === "text" ? Number(block["length"]) : 0)
  const isWhole = lengths.reduce((sum, length) => sum + length, 0) === text.length
  return new Rebuilding(message, text, isWhole).blocks(kept)
}

const isBlock = (value: unknown): value is Block => isObject(value) && typeof value["type"] === "string"

class Rebuilding {
  private readonly calls: Map<string, ToolCall.ToolCall>
  private readonly text: string
  /** The text is the one that the model said. Else it was changed since, and nobody knows what of it belongs where. */
  private readonly isWhole: boolean
  private at = 0

  constructor(message: Message.AssistantMessage, text: string, isWhole: boolean) {
    this.calls = new Map(message.toolCalls.map((call) => [call.id, call]))
    this.text = text
    this.isWhole = isWhole
  }

  blocks(kept: ReadonlyArray<Kept>): ReadonlyArray<Block> {
    const blocks = kept.flatMap((block) => this.block(block))
    const rest = Array.from(this.calls.values(), (call) => toolUse(call))
    if (this.isWhole) return [...blocks, ...rest]
    const isCall = ({ type }: Block): boolean => type === "tool_use"
    return [
      ...blocks.filter((block) => !isCall(block)),
      ...textBlocks(this.text),
      ...blocks.filter(isCall),
      ...rest
    ]
  }

  private block(kept: Kept): ReadonlyArray<Block> {
    switch (kept.type) {
      case "text": {
        if (!this.isWhole) return []
        const { length, ...rest } = kept
        const from = this.at
        this.at += Number(length)
        return textBlocks(this.text.slice(from, this.at), rest)
      }
      case "tool_use": {
        const { id, ...rest } = kept
        const call = this.calls.get(textOf(id))
        if (call === undefined) return []
        this.calls.delete(call.id)
        return [toolUse(call, rest)]
      }
      default:
        return [kept]
    }
  }
}

interface Place {
  /** What the tools that run at Anthropic have answered, anywhere in the conversation. */
  readonly resolved: ReadonlySet<unknown>
  readonly isLatest: boolean
  readonly isLast: boolean
}

/** What of an answer may stand where it stands. */
const answer = ({ content, role }: Turn, { isLast, isLatest, resolved }: Place): Turn => {
  const hasCalls = content.some(({ type }) => type === "tool_use")
  // A tool that runs at Anthropic may still be at it: then the model goes on from here.
  const mayWait = isLast || (isLatest && hasCalls)
  const settled = content.filter((block) => mayWait || !isServerCall(block) || resolved.has(block["id"]))
  return { role, content: ended(callsLast(settled), isLast) }
}

const isServerCall = ({ type }: Block): boolean => type !== "tool_use" && type.endsWith("tool_use")

// After a call the API accepts no text: it would stand between the call and its answer.
const callsLast = (content: ReadonlyArray<Block>): ReadonlyArray<Block> => {
  const first = content.findIndex(({ type }) => type === "tool_use")
  if (first < 0) return content
  const isLate = (block: Block, index: number): boolean => block.type === "text" && index > first
  return [
    ...content.slice(0, first),
    ...content.filter(isLate),
    ...content.filter((block, index) => index >= first && !isLate(block, index))
  ]
}

// An answer does not end with thoughts, nor with spaces when the model is to go on from it.
const ended = (content: ReadonlyArray<Block>, isLast: boolean): ReadonlyArray<Block> => {
  const last = content.at(-1)
  if (last === undefined) return content
  if (isThinking(last)) return ended(content.slice(0, -1), isLast)
  return isLast && last.type === "text"
    ? [...content.slice(0, -1), { ...last, text: textOf(last["text"]).trimEnd() }]
    : content
}
