/**
 * Declarations of tools: ours as theirs, with their JSON Schema untouched, and back.
 */
import type { Tool as OurTool } from "@allm/core"
import * as Tool from "@effect/ai/Tool"
import type * as Toolkit from "@effect/ai/Toolkit"
import * as Effect from "effect/Effect"
import * as Schema from "effect/Schema"
import { type JsonObject, projectObject } from "./json.ts"

/** A tool of theirs that takes whatever the model writes: arguments are checked by whoever runs the call. */
export type Lenient<Name extends string = string> = Tool.Tool<
  Name,
  {
    readonly parameters: AnyArguments
    readonly success: typeof Schema.Unknown
    readonly failure: typeof Schema.Unknown
    readonly failureMode: "return"
  }
>

/** Parameters of any kind. Theirs wants the schema of a struct; nothing but its types and its AST is ever used. */
export interface AnyArguments extends Tool.AnyStructSchema {
  readonly Type: { readonly [key: string]: unknown }
  readonly Encoded: { readonly [key: string]: unknown }
  readonly Context: never
}

/**
 * A schema that decodes anything and whose JSON Schema is the given one, word for word.
 *
 * Effect takes an annotation for the whole schema when it has a type; one that has none has to look as if.
 */
export const verbatim = (jsonSchema: JsonObject): Schema.Schema<unknown> => {
  const whole = "type" in jsonSchema
    ? jsonSchema
    : Object.defineProperty({ ...jsonSchema }, "type", { value: undefined, enumerable: false })
  return Schema.Unknown.annotations({ jsonSchema: whole })
}

export const argumentsOf = (jsonSchema: JsonObject): AnyArguments => verbatim(jsonSchema) as unknown as AnyArguments

export const toTool = ({ description, inputSchema, name }: OurTool.Declaration): Lenient =>
  Tool.make(name, {
    description,
    success: Schema.Unknown,
    failure: Schema.Unknown,
    failureMode: "return"
  }).setParameters(argumentsOf(inputSchema))

/** Tools for the model to know of. Nobody runs them there. */
export type KnownTools = Toolkit.WithHandler<Record<string, Tool.Any>>

/**
 * The tools of a request as theirs knows them. Those that a provider defines stand in for ours of the same name; those that
 * a provider also runs are always there.
 */
export const knownTools = (
  declared: ReadonlyArray<OurTool.Declaration>,
  provided: ReadonlyArray<Tool.Any>
): KnownTools => {
  const tools = new Map<string, Tool.Any>(declared.map((declaration) => [declaration.name, toTool(declaration)]))
  for (const tool of provided) {
    if (tools.has(tool.name) || !needsHandler(tool)) tools.set(tool.name, lenient(tool))
  }
  return {
    tools: Object.fromEntries(tools),
    handle: (name) => Effect.dieMessage(`@effect/ai was told not to run ${String(name)}, and did`)
  }
}

// Some of them are declared without the parameters that their providers send.
const lenient = (tool: Tool.Any): Tool.Any =>
  Object.assign(Object.create(Object.getPrototypeOf(tool) as object), tool, {
    parametersSchema: Schema.Unknown,
    successSchema: Schema.Unknown,
    failureSchema: Schema.Unknown
  })

/** Whether someone on this side runs the calls of a tool. */
export const needsHandler = (tool: Tool.Any): boolean =>
  !Tool.isProviderDefined(tool) || (tool as unknown as Tool.AnyProviderDefined).requiresHandler

/** The names that providers have for calls of tools they define. */
export const providerNames = (tools: ReadonlyArray<Tool.Any>): ReadonlyMap<string, string> =>
  new Map(
    (tools as ReadonlyArray<Partial<Tool.AnyProviderDefined> & Tool.Any>).flatMap(({ name, providerName }) =>
      providerName === undefined ? [] : [[name, providerName]]
    )
  )

/** What a tool of theirs is to a model. */
export const declarationOf = (tool: Tool.Any): OurTool.Declaration => ({
  name: tool.name,
  description: tool.description ?? Tool.getDescriptionFromSchemaAst(tool.parametersSchema.ast) ?? "",
  inputSchema: jsonSchemaOf(tool),
  manual: false,
  needsApproval: false,
  replay: "never",
  exclusive: false,
  metadata: {}
})

// Effect writes no parameters as a schema that also takes lists and has an address of its own; providers refuse both.
const jsonSchemaOf = (tool: Tool.Any): JsonObject => {
  const { $id: _id, ...schema } = projectObject(Tool.getJsonSchemaFromSchemaAst(tool.parametersSchema.ast))
  return schema["type"] === "object"
    ? schema
    : { type: "object", properties: {}, required: [], additionalProperties: false }
}
