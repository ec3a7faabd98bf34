/**
 * What an answer of the Responses API leaves behind for the next request: its reasoning, the phases of its texts, and
 * whatever the server did on its own. It travels in the metadata of the message, without the texts and the arguments that
 * the message holds anyway.
 */
import { type AssistantMessage, toText } from "@allm/core/Message"
import type { ToolCall } from "@allm/core/ToolCall"
import { compact, type Fields, fieldsOf, listOf, numberOf, objectsOf, textOf } from "./lenient.ts"

/** An item of an answer with what became of it here. */
export interface Kept {
  readonly item: Fields
  /** The text of a message, as it was told. */
  readonly text?: string
  /** The id of a call, as it was told. */
  readonly callId?: string
}

/** Undefined when the message itself says everything. */
export const stateOf = (kept: ReadonlyArray<Kept>, isStored: boolean): Fields | undefined => {
  const items = kept.flatMap((one): ReadonlyArray<Fields> => {
    const { arguments: _arguments, content: _content, name: _name, role: _role, status: _status, ...rest } = one.item
    switch (one.item["type"]) {
      case "reasoning":
        return canReturn(one.item, isStored) ? [compact(one.item)] : []
      case "message":
        return [{ ...compact(rest), length: one.text?.length ?? 0 }]
      case "function_call":
        return [{ ...compact(rest), call_id: one.callId }]
      default:
        return [one.item]
    }
  })
  return items.some(saysMore) ? { items } : undefined
}

/** Without its content, reasoning is only known where it was stored. */
const canReturn = (item: Fields, isStored: boolean): boolean =>
  isStored || textOf(item["encrypted_content"]) !== "" || listOf(item["content"]).length > 0

const saysMore = (item: Fields): boolean =>
  (item["type"] !== "message" && item["type"] !== "function_call") || item["phase"] !== undefined ||
  item["namespace"] !== undefined

/**
 * The items that say again what a message says, as the server knows them. Undefined when there is no state, or when the
 * message was changed since.
 */
export const itemsOf = (
  message: AssistantMessage,
  provider: string,
  callItem: (call: ToolCall) => Fields
): ReadonlyArray<Fields> | undefined => {
  const state = fieldsOf(message.metadata[provider])
  if (state === undefined || !Array.isArray(state["items"])) return undefined
  const kept = objectsOf(state["items"])
  const text = toText(message)
  const lengths = kept.map((item) => item["type"] === "message" ? numberOf(item["length"]) ?? 0 : 0)
  if (lengths.reduce((sum, length) => sum + length, 0) !== text.length) return undefined

  const replay = new Replay()
  const calls = new Map(message.toolCalls.map((call) => [call.id, call]))
  const answered = new Set(kept.filter(isOutput).map((item) => item["call_id"]))
  let at = 0
  kept.forEach((item, index) => {
    switch (item["type"]) {
      case "reasoning":
        return replay.hold(item)
      case "message": {
        const said = text.slice(at, at += lengths[index]!)
        const { length: _length, ...rest } = item
        return said === "" ? replay.skip() : replay.add({
          ...rest,
          role: "assistant",
          status: "completed",
          content: [{ type: "output_text", text: said, annotations: [] }]
        })
      }
      case "function_call": {
        const call = calls.get(textOf(item["call_id"]))
        if (call === undefined) return replay.skip()
        calls.delete(call.id)
        return replay.add({ ...item, ...callItem(call) })
      }
      default:
        // What waits for an output that nobody can give would make the history invalid.
        return typeof item["call_id"] === "string" && !answered.has(item["call_id"]) ? replay.skip() : replay.add(item)
    }
  })
  for (const call of calls.values()) replay.add(callItem(call))
  return replay.items
}

const isOutput = (item: Fields): boolean => textOf(item["type"]).endsWith("_output")

/** Reasoning is refused without the item it led to. */
class Replay {
  readonly items: Array<Fields> = []
  private held: Array<Fields> = []

  hold(reasoning: Fields): void {
    this.held.push(reasoning)
  }

  add(item: Fields): void {
    this.items.push(...this.held, item)
    this.held = []
  }

  skip(): void {
    this.held = []
  }
}
