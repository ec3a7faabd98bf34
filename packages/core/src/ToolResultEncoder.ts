/**
 * How a result becomes the text of a tool message.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Layer from "effect/Layer"
import { printJson, toJson } from "./internal/json.ts"
import { EncodingFailed } from "./ToolError.ts"

/**
 * An encoder.
 *
 * @since 0.1.0
 * @category models
 */
export interface Service {
  /** Writes a result as the text of its message. A string stays as it is. */
  readonly encode: (value: unknown) => Effect.Effect<string, EncodingFailed>
  /** Lets the model read what a crash said. For development only. */
  readonly exposeDefects?: boolean | undefined
}

/**
 * Encodes as JSON: strings as they are, `null` for undefined, and the usual form of dates, maps, sets, URLs, errors, typed
 * arrays and whatever has a `toJSON`. A bigint, a function, a symbol or a cycle fails with the path to it.
 *
 * @example
 * ```ts
 * import { ToolResultEncoder } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const text = Effect.runSync(ToolResultEncoder.json.encode({ seen: new Set(["a", "b"]) }))
 * const failed = Effect.runSync(Effect.flip(ToolResultEncoder.json.encode({ totals: [1, 2n] })))
 *
 * assert.strictEqual(text, "{\"seen\":[\"a\",\"b\"]}")
 * assert.deepStrictEqual(failed.path, ["totals", 1])
 * ```
 *
 * @since 0.1.0
 * @category services
 */
export const json: Service = {
  encode: (value) => {
    if (typeof value === "string") return Effect.succeed(value)
    const projected = toJson(value)
    const printed = Either.isRight(projected) ? printJson(projected.right) : projected
    if (Either.isRight(printed)) return Effect.succeed(printed.right)
    const { path, problem } = printed.left
    return Effect.fail(
      new EncodingFailed({ path: path.map((key) => typeof key === "number" ? key : String(key)), detail: problem })
    )
  }
}

/**
 * The encoder in use: `json` unless a layer says otherwise.
 *
 * @since 0.1.0
 * @category references
 */
export class ToolResultEncoder extends Context.Reference<ToolResultEncoder>()<"@allm/core/ToolResultEncoder", Service>(
  "@allm/core/ToolResultEncoder",
  { defaultValue: () => json }
) {}

/**
 * Provides an encoder of your own.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolResultEncoder, ToolRunner } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const shouting = ToolResultEncoder.layer({
 *   encode: (value) => Effect.map(ToolResultEncoder.json.encode(value), (text) => text.toUpperCase())
 * })
 * const ping = Tool.make("ping", { description: "Answers", handler: () => "pong" })
 *
 * const { messages } = Effect.runSync(
 *   ToolRunner.run([ToolCall.make({ id: "c0", name: "ping", arguments: {} })], [ping]).pipe(Effect.provide(shouting))
 * )
 *
 * assert.strictEqual(messages[0]?.content, "PONG")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (service: Service): Layer.Layer<ToolResultEncoder> => Layer.succeed(ToolResultEncoder, service)

/**
 * Provides the JSON encoder; `exposeDefects` shows crashes to the model while a tool is being written.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolResultEncoder, ToolRunner } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const crash = Tool.make("crash", {
 *   description: "Crashes",
 *   handler: (): string => {
 *     throw new Error("the disk is full")
 *   }
 * })
 * const run = ToolRunner.run([ToolCall.make({ id: "c0", name: "crash", arguments: {} })], [crash])
 * const exposed = Effect.provide(run, ToolResultEncoder.layerJson({ exposeDefects: true }))
 *
 * assert.doesNotMatch(Effect.runSync(run).messages[0]!.content, /the disk is full/)
 * assert.match(Effect.runSync(exposed).messages[0]!.content, /the disk is full/)
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layerJson = (options?: { readonly exposeDefects?: boolean | undefined }): Layer.Layer<ToolResultEncoder> =>
  layer({ ...json, exposeDefects: options?.exposeDefects ?? false })
