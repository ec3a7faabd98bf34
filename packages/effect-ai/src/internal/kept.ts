/**
 * What only one side understands is kept where the other side passes it through: theirs in our `metadata`, under
 * `effectAi`; ours in their `options` and `metadata`, under `allm`.
 */
import { ToolCall } from "@allm/core"
import type * as Prompt from "@effect/ai/Prompt"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { compact, isEmpty, isObject, type JsonObject, projectObject } from "./json.ts"

export type Options = Prompt.ProviderOptions

const theirs = "effectAi"
const ours = "allm"

const OptionsSchema = Schema.optionalWith(
  Schema.Record({ key: Schema.String, value: Schema.Record({ key: Schema.String, value: Schema.Unknown }) }),
  { exact: true }
)
const Text = Schema.optionalWith(Schema.String, { exact: true })

/**
 * The place of a part of theirs in a message of ours. Texts and files stand in the content, calls among the tool calls:
 * what is there is not written twice.
 */
const Place = Schema.Union(
  Schema.Struct({ type: Schema.Literal("text"), length: Schema.Int, options: OptionsSchema }),
  Schema.Struct({
    type: Schema.Literal("file"),
    mediaType: Text,
    fileName: Text,
    // Its data was text: base64, or a name that only the provider understands.
    isText: Schema.optionalWith(Schema.Boolean, { exact: true }),
    options: OptionsSchema
  }),
  Schema.Struct({ type: Schema.Literal("reasoning"), text: Schema.String, options: OptionsSchema }),
  Schema.Struct({ type: Schema.Literal("call"), id: Schema.String }),
  // What the provider called and ran itself.
  Schema.Struct({
    type: Schema.Literal("provider-call"),
    id: Schema.String,
    name: Schema.String,
    params: Schema.Unknown,
    options: OptionsSchema
  }),
  Schema.Struct({
    type: Schema.Literal("provider-result"),
    id: Schema.String,
    name: Schema.String,
    result: Schema.Unknown,
    isFailure: Schema.Boolean,
    options: OptionsSchema
  })
)
export type Place = typeof Place.Type

const Kept = Schema.Struct({
  options: OptionsSchema,
  // Of the message that results of tools stood in; the last of them keeps it.
  messageOptions: OptionsSchema,
  parts: Schema.optionalWith(Schema.Array(Place), { exact: true })
})
export interface Kept extends Schema.Schema.Type<typeof Kept> {}

const decodeKept = Schema.decodeUnknownOption(Kept)

/** What a message of ours keeps of theirs. What cannot be read counts as nothing. */
export const keptOf = ({ metadata }: { readonly metadata: JsonObject }): Kept =>
  metadata[theirs] === undefined ? {} : Option.getOrElse(decodeKept(metadata[theirs]), () => ({}))

/** Metadata of ours that keeps something of theirs. */
export const keep = (metadata: JsonObject, kept: Kept): JsonObject => {
  const told = compact({
    ...kept,
    options: someOptions(kept.options),
    messageOptions: someOptions(kept.messageOptions)
  })
  return isEmpty(told) ? metadata : { ...metadata, [theirs]: told }
}

/** Options as data, or nothing when they say nothing. */
export const someOptions = (options: unknown): Kept["options"] => {
  const projected = Object.entries(projectObject(options)).filter(([, value]) => isObject(value) && !isEmpty(value))
  return projected.length === 0 ? undefined : Object.fromEntries(projected) as Kept["options"]
}

/** What a message or a call of ours says that theirs has no place for. */
const Own = Schema.Struct({
  name: Text,
  rawArguments: Text,
  metadata: Schema.optionalWith(Schema.Record({ key: Schema.String, value: Schema.Unknown }), { exact: true })
})
interface Own extends Schema.Schema.Type<typeof Own> {}

const decodeOwn = Schema.decodeUnknownOption(Own)

export const ownOf = (options: Options): Own =>
  options[ours] === undefined ? {} : Option.getOrElse(decodeOwn(options[ours]), () => ({}))

/** Options of theirs without ours. */
export const withoutOwn = (options: Options): Options => {
  const { [ours]: _ours, ...rest } = options
  return rest
}

/** Options that carry what a message of ours says besides. */
export const optionsOf = (
  message: { readonly metadata: JsonObject; readonly name?: string },
  options: Options | undefined
): Options => withOwn(options, { name: message.name, metadata: someOf(message.metadata) })

/** Options that carry what a call of ours says besides. */
export const callOptions = (call: ToolCall.ToolCall): Options =>
  withOwn(keptOf(call).options, {
    rawArguments: call.arguments === undefined ? call.rawArguments ?? "" : undefined,
    metadata: someOf(call.metadata)
  })

const withOwn = (
  options: Options | undefined,
  own: { readonly [K in keyof Own]: Own[K] | undefined }
): Options => {
  const told = compact(own)
  return isEmpty(told) ? options ?? {} : { ...options, [ours]: told }
}

const someOf = (metadata: JsonObject): JsonObject | undefined => {
  const { [theirs]: _theirs, ...rest } = metadata
  return isEmpty(rest) ? undefined : rest
}

/** A call that theirs tells of, with whatever it carries of ours. */
export const toolCall = (
  part: { readonly id: string; readonly name: string; readonly params: unknown },
  options: Options
): ToolCall.ToolCall => {
  const own = ownOf(options)
  const metadata = keep(own.metadata ?? {}, compact({ options: someOptions(withoutOwn(options)) }))
  const { id, name, params } = part
  return own.rawArguments === undefined
    ? { id, name, arguments: params === undefined ? {} : params, metadata }
    : ToolCall.fromRaw({ id, name, rawArguments: own.rawArguments, metadata })
}

/** The parameters theirs is told of a call. They have to be an object, also where the model wrote none. */
export const paramsOf = (call: ToolCall.ToolCall): unknown =>
  call.arguments === undefined ? { invalidJson: call.rawArguments ?? "" } : call.arguments
