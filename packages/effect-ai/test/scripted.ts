import { type AiError, LanguageModel, type Response } from "@effect/ai"
import { Effect, Stream } from "effect"

export type Part = Response.StreamPartEncoded

/** What a scripted model of theirs does when it is asked. */
export type Script = (options: LanguageModel.ProviderOptions) => Stream.Stream<Part, AiError.AiError>

export const usage = { inputTokens: 5, outputTokens: 3, totalTokens: 8 }

export const finish = (reason: Response.FinishReason): Part => ({ type: "finish", reason, usage })

export const text = (pieces: ReadonlyArray<string>, id = "0"): ReadonlyArray<Part> => [
  { type: "text-start", id },
  ...pieces.map((delta): Part => ({ type: "text-delta", id, delta })),
  { type: "text-end", id }
]

export const call = (
  id: string,
  name: string,
  params: unknown,
  pieces?: ReadonlyArray<string>
): ReadonlyArray<Part> => [
  { type: "tool-params-start", id, name },
  ...(pieces ?? [JSON.stringify(params)]).map((delta): Part => ({ type: "tool-params-delta", id, delta })),
  { type: "tool-params-end", id },
  { type: "tool-call", id, name, params }
]

/** A model of theirs made with their own constructor, and what it was asked. */
export const make = (script: Script) =>
  Effect.gen(function*() {
    const asked: Array<LanguageModel.ProviderOptions> = []
    let open = 0
    let closed = 0
    const play: Script = (options) =>
      Stream.suspend(() => {
        asked.push(options)
        open++
        return Stream.ensuring(
          script(options),
          Effect.sync(() => {
            open--
            closed++
          })
        )
      })
    const model = yield* LanguageModel.make({
      generateText: (options) => Effect.map(Stream.runCollect(play(options)), (parts) => whole(Array.from(parts))),
      streamText: play
    })
    return { model, asked, open: Effect.sync(() => open), closed: Effect.sync(() => closed) }
  })

const whole = (parts: ReadonlyArray<Part>): Array<Response.PartEncoded> => {
  const texts = new Map<string, { readonly type: "text" | "reasoning"; text: string; metadata: {} }>()
  return parts.flatMap((part): Array<Response.PartEncoded> => {
    switch (part.type) {
      case "text-start":
      case "reasoning-start": {
        const block = {
          type: part.type === "text-start" ? "text" as const : "reasoning" as const,
          text: "",
          metadata: part.metadata ?? {}
        }
        texts.set(part.id, block)
        return [block]
      }
      case "text-delta":
      case "reasoning-delta":
        texts.get(part.id)!.text += part.delta
        return []
      case "text-end":
      case "reasoning-end":
      case "tool-params-start":
      case "tool-params-delta":
      case "tool-params-end":
      case "error":
        return []
      default:
        return [part]
    }
  })
}

/** Each part in a read of its own. */
export const reads = (parts: ReadonlyArray<Part>): Stream.Stream<Part> => Stream.rechunk(Stream.fromIterable(parts), 1)
