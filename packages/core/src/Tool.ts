/**
 * Tools a model may call: a name, a description, a schema for the arguments, and a handler.
 *
 * @since 0.1.0
 */
import * as Duration from "effect/Duration"
import type * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import type * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as Issues from "./internal/issues.ts"
import { describe, formatPath, isPlainObject, JsonObject } from "./internal/json.ts"
import * as JsonSchema from "./internal/jsonSchema.ts"
import * as Compiled from "./internal/tool.ts"
import { declarationIssues, optionIssues, positiveDuration } from "./internal/toolOptions.ts"
import type * as ToolContext from "./ToolContext.ts"
import type { ToolError } from "./ToolError.ts"
import type * as ToolResult from "./ToolResult.ts"
import type { ValidationError } from "./ValidationError.ts"

/**
 * What may be done with a call of which it is unknown whether it ran: run it again when it only reads or when repeating it
 * changes nothing, otherwise leave it to a person.
 *
 * @since 0.1.0
 * @category models
 */
export type Replay = "never" | "idempotent" | "readonly"

/**
 * A tool. `Params` is what its handler receives, `A` and `E` are what it gives or reports, `R` is what it needs.
 *
 * @since 0.1.0
 * @category models
 */
export interface Tool<out Name extends string, in Params, out A, out E, out R> {
  readonly name: Name
  readonly description: string
  /** The arguments as JSON Schema, in the form providers accept. */
  readonly inputSchema: { readonly [key: string]: unknown }
  readonly parameters: Schema.Schema.Any | undefined
  readonly success: Schema.Schema.Any | undefined
  readonly failure: Schema.Schema.Any | undefined
  readonly handler: ((params: Params, context: ToolContext.Service) => unknown) | undefined
  readonly manual: boolean
  readonly needsApproval: boolean | ((params: Params, context: ToolContext.Service) => unknown)
  readonly timeout: Duration.Duration | undefined
  readonly retry: Schedule.Schedule<unknown, ToolError> | undefined
  readonly replay: Replay
  readonly exclusive: boolean | ((params: Params) => string)
  readonly metadata: { readonly [key: string]: unknown }
  /** Carries types only; never there at run time. */
  readonly "~types"?: { readonly success: A; readonly failure: E; readonly requirements: R }
}

/**
 * A tool of any type.
 *
 * @since 0.1.0
 * @category models
 */
// The parameters stand in a contravariant place, where `never` is the type that every tool fits.
export type Any = Tool<string, never, unknown, unknown, unknown>

type TypesOf<T extends Any> = NonNullable<T["~types"]>

/**
 * What a tool's handler receives.
 *
 * @since 0.1.0
 * @category models
 */
export type Parameters<T> = T extends Tool<string, infer Params, unknown, unknown, unknown> ? Params : never

/**
 * What a tool succeeds with.
 *
 * @since 0.1.0
 * @category models
 */
export type Success<T extends Any> = TypesOf<T>["success"]

/**
 * What a tool may report as a failure.
 *
 * @since 0.1.0
 * @category models
 */
export type Failure<T extends Any> = TypesOf<T>["failure"]

/**
 * The services a run that can call the tool has to be given.
 *
 * @since 0.1.0
 * @category models
 */
export type Requirements<T extends Any> = Exclude<TypesOf<T>["requirements"], ToolContext.ToolContext>

type Bare<A> = A | ToolResult.ToolResult<A>

/**
 * What a handler of a tool that succeeds with `A` may return: a value or a `ToolResult`, as it is, in a promise, or in
 * an Effect.
 *
 * @since 0.1.0
 * @category models
 */
export type HandlerReturn<A> = Bare<A> | PromiseLike<Bare<A>> | Effect.Effect<Bare<A>, unknown, unknown>

type Settled<Ret> = Ret extends Effect.Effect<infer A, infer _E, infer _R> ? A
  : Ret extends PromiseLike<infer A> ? A
  : Ret

type Value<A> = A extends { readonly [ToolResult.TypeId]: ToolResult.TypeId }
  ? A extends ToolResult.Ok<infer V> ? V : never
  : A

type Reported<A> = A extends ToolResult.Failure<infer E> ? E : never

/**
 * What a handler succeeds with, read off its return type.
 *
 * @since 0.1.0
 * @category models
 */
export type ReturnSuccess<Ret> = Value<Settled<Ret>>

/**
 * What a handler may report, read off its return type.
 *
 * @since 0.1.0
 * @category models
 */
export type ReturnFailure<Ret> =
  | (Ret extends Effect.Effect<infer _A, infer E, infer _R> ? E : never)
  | Reported<Settled<Ret>>

/**
 * What a handler needs, read off its return type.
 *
 * @since 0.1.0
 * @category models
 */
export type ReturnRequirements<Ret> = Ret extends Effect.Effect<infer _A, infer _E, infer R> ? R : never

/**
 * The options of every tool, whichever way its arguments are described.
 *
 * @since 0.1.0
 * @category models
 */
export interface CommonOptions<Params, Ret, AR> {
  /** What the tool does and when to use it, for the model. */
  readonly description: string
  /** What a call runs. A tool without one is `manual`, or gets it from `ToolExecutor.layerHandlers`. */
  readonly handler?: ((params: Params, context: ToolContext.Service) => Ret) | undefined
  /** The loop stops at calls of this tool and leaves them to the caller. */
  readonly manual?: boolean | undefined
  /** Calls wait for a person's consent. A predicate that fails means "ask". */
  readonly needsApproval?:
    | boolean
    | ((params: Params, context: ToolContext.Service) => boolean | Effect.Effect<boolean, unknown, AR>)
    | undefined
  /** The hard limit of one call, all its attempts included. Beats the run's. */
  readonly timeout?: Duration.DurationInput | undefined
  /** Runs the handler again after a reported failure or a crash. */
  readonly retry?: Schedule.Schedule<unknown, ToolError> | undefined
  /** Whether a call that may have run before a crash may run again. Default `"never"`. */
  readonly replay?: Replay | undefined
  /**
   * `true`: no other call of the batch runs at the same time. A parameter's name, or a function: no other call with the
   * same key does.
   */
  readonly exclusive?: boolean | (keyof Params & string) | ((params: Params) => string) | undefined
  /** What the application or a provider keeps with the tool; JSON. */
  readonly metadata?: { readonly [key: string]: unknown } | undefined
}

/**
 * How arguments are described: the fields of a struct, or any Schema whose JSON side is an object.
 *
 * @since 0.1.0
 * @category models
 */
export type ParametersInput = Schema.Struct.Fields | Schema.Schema.Any

/**
 * What a handler receives, read off the given parameters.
 *
 * @since 0.1.0
 * @category models
 */
export type ParametersOf<P extends ParametersInput> = P extends Schema.Schema<infer A, infer _I, infer _R> ? A
  : P extends Schema.Struct.Fields ? Schema.Simplify<Schema.Struct.Type<P>>
  : never

type ParametersContext<P extends ParametersInput> = P extends Schema.Schema<infer _A, infer _I, infer R> ? R
  : P extends Schema.Struct.Fields ? Schema.Struct.Context<P>
  : never

type TypeOr<S extends Schema.Schema.Any, Else> = [S] extends [never] ? Else : Schema.Schema.Type<S>

/**
 * The options of a tool made from Effect schemas.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options<
  P extends ParametersInput,
  S extends Schema.Schema.Any,
  F extends Schema.Schema.Any,
  Ret,
  AR
> extends CommonOptions<ParametersOf<P>, Ret, AR> {
  /** What the model has to give: the fields of a struct, or a Schema. Without it the tool takes nothing. */
  readonly parameters?: P | undefined
  /** The schema of a success: checked at run time, and the form in which the model sees it. */
  readonly success?: S | undefined
  /** The schema of the declared failures: the only ones of which the model sees more than plain data. */
  readonly failure?: F | undefined
}

// With a failure schema, what the handler reports has to fit it: the type of the options then asks for what no handler is.
type OnlyDeclared<F extends Schema.Schema.Any, Ret> = [F] extends [never] ? unknown
  : [ReturnFailure<Ret>] extends [Schema.Schema.Type<F>] ? unknown
  : { readonly handler: { readonly "reports a failure that is not declared": ReturnFailure<Ret> } }

/**
 * Makes a tool from Effect schemas. A wrong construction throws a `ValidationError` at once.
 *
 * The handler may be a plain function, an async function, or return an Effect. A value is a success; a throw or a
 * rejection is a crash, which is kept from the model; `Effect.fail` and `ToolResult.error` are reported failures. With a
 * `failure` schema a handler may report only what fits it.
 *
 * Fields made in place by `Schema.optionalWith(schema, options)` come too late for TypeScript to type the handler by them:
 * write `parameters: Schema.Struct({ … })` around those, or `schema.pipe(Schema.optionalWith(options))`.
 *
 * @example
 * ```ts
 * import { Tool } from "@allm/core"
 * import { Schema } from "effect"
 *
 * const getWeather = Tool.make("get_weather", {
 *   description: "Current weather for a city",
 *   parameters: { city: Schema.String.annotations({ description: "Name of the city" }) },
 *   timeout: "5 seconds",
 *   handler: async ({ city }) => `It is sunny in ${city}.`
 * })
 *
 * assert.deepStrictEqual(getWeather.inputSchema, {
 *   type: "object",
 *   required: ["city"],
 *   properties: { city: { type: "string", description: "Name of the city" } },
 *   additionalProperties: false
 * })
 * assert.throws(() => Tool.make("get weather", { description: "No spaces, please" }), /get_weather/)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = <
  const Name extends string,
  Ret extends HandlerReturn<TypeOr<S, unknown>> = never,
  P extends ParametersInput = {},
  S extends Schema.Schema.Any = never,
  F extends Schema.Schema.Any = never,
  AR = never
>(
  name: Name,
  options: Options<P, S, F, Ret, AR> & OnlyDeclared<F, Ret>
): Tool<
  Name,
  ParametersOf<P>,
  TypeOr<S, ReturnSuccess<Ret>>,
  ReturnFailure<Ret>,
  ReturnRequirements<Ret> | ParametersContext<P> | Schema.Schema.Context<S | F> | NoInfer<AR>
> => {
  const given = toSchema(options?.parameters)
  const inputSchema = Either.flatMap(given, (schema) =>
    Either.try({
      try: () => JsonSchema.fromSchema(schema),
      catch: (error) => error instanceof Error ? error.message.replaceAll("\n", ", ") : String(error)
    }))
  const parameters = Either.getOrElse(given, () => Schema.Struct({}))
  return build(name, options, {
    known: ["parameters", "success", "failure"],
    inputSchema: Either.flatMap(inputSchema, rootedInObject),
    field: "parameters",
    parameters,
    decode: Compiled.decoder(parameters)
  })
}

/**
 * Makes a tool from a raw JSON Schema (draft 2020-12), against which arguments are validated before the handler sees them.
 *
 * @example
 * ```ts
 * import { Tool } from "@allm/core"
 *
 * const add = Tool.fromJsonSchema("add", {
 *   description: "Adds two numbers",
 *   schema: {
 *     type: "object",
 *     properties: { a: { type: "number" }, b: { type: "number" } },
 *     required: ["a", "b"]
 *   },
 *   handler: ({ a, b }) => Number(a) + Number(b)
 * })
 *
 * assert.strictEqual(add.name, "add")
 * assert.throws(
 *   () => Tool.fromJsonSchema("add", { description: "Adds", schema: { $ref: "#/$defs/missing" } }),
 *   /leads nowhere/
 * )
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const fromJsonSchema = <const Name extends string, Ret = never, AR = never>(
  name: Name,
  options: CommonOptions<{ readonly [key: string]: unknown }, Ret, AR> & {
    readonly schema: { readonly [key: string]: unknown }
  }
): Tool<
  Name,
  { readonly [key: string]: unknown },
  ReturnSuccess<Ret>,
  ReturnFailure<Ret>,
  ReturnRequirements<Ret> | NoInfer<AR>
> => {
  const schema: unknown = options?.schema
  const validate = isPlainObject(schema)
    ? JsonSchema.compile(schema)
    : Either.left(`write a JSON Schema object such as { type: "object", properties: {} }, not ${describe(schema)}`)
  return build(name, options, {
    known: ["schema"],
    inputSchema: Either.flatMap(validate, () => rootedInObject(schema as JsonSchema.JsonSchema)),
    field: "schema",
    parameters: undefined,
    decode: Compiled.validator(Either.getOrElse(validate, () => () => []))
  })
}

/**
 * All of a tool but its handler, as plain data: what goes to a provider, a store or another process.
 *
 * @since 0.1.0
 * @category schemas
 */
export const Declaration = Schema.Struct({
  name: Schema.String,
  description: Schema.String,
  inputSchema: JsonObject,
  manual: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  needsApproval: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  timeoutMillis: Schema.optionalWith(Schema.Positive.pipe(Schema.finite()), { exact: true }),
  replay: Schema.optionalWith(Schema.Literal("never", "idempotent", "readonly"), { default: () => "never" as const }),
  exclusive: Schema.optionalWith(Schema.Boolean, { default: () => false }),
  metadata: Schema.optionalWith(JsonObject, { default: () => ({}) })
}).annotations({ identifier: "ToolDeclaration" })

/**
 * What is known of a tool without its code.
 *
 * @since 0.1.0
 * @category models
 */
export interface Declaration extends Schema.Schema.Type<typeof Declaration> {}

/**
 * The declaration of a tool. What only exists as code is told cautiously: a predicate for approval becomes "always ask",
 * a key for exclusion "always alone".
 *
 * @example
 * ```ts
 * import { Tool } from "@allm/core"
 *
 * const ping = Tool.make("ping", { description: "Answers", handler: () => "pong" })
 * const stored = JSON.stringify(Tool.declaration(ping))
 * const again = Tool.attach(JSON.parse(stored), () => "pong")
 *
 * assert.deepStrictEqual(Tool.declaration(again), Tool.declaration(ping))
 * ```
 *
 * @since 0.1.0
 * @category encoding
 */
export const declaration = (tool: Any): Declaration => ({
  name: tool.name,
  description: tool.description,
  inputSchema: tool.inputSchema,
  manual: tool.manual,
  needsApproval: tool.needsApproval !== false,
  ...(tool.timeout === undefined ? {} : {
    // JSON has no infinity; this limit is as good.
    timeoutMillis: Math.min(Duration.toMillis(tool.timeout), Number.MAX_SAFE_INTEGER)
  }),
  replay: tool.replay,
  exclusive: tool.exclusive !== false,
  metadata: tool.metadata
})

/**
 * Makes a declared tool runnable again. Its arguments are validated against the declared JSON Schema.
 *
 * @example
 * ```ts
 * import { Tool, ToolCall, ToolRunner } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const declared = Tool.declaration(Tool.make("ping", { description: "Answers" }))
 * const ping = Tool.attach(declared, () => "pong")
 *
 * const run = ToolRunner.run([ToolCall.make({ id: "c0", name: "ping", arguments: {} })], [ping])
 *
 * assert.strictEqual(Effect.runSync(run).messages[0]?.content, "pong")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const attach = <Ret>(
  declared: Declaration,
  handler: (params: { readonly [key: string]: unknown }, context: ToolContext.Service) => Ret
): Tool<
  string,
  { readonly [key: string]: unknown },
  ReturnSuccess<Ret>,
  ReturnFailure<Ret>,
  ReturnRequirements<Ret>
> => {
  const { inputSchema, name, timeoutMillis, ...options } = Either.getOrThrowWith(validate(declared), (error) => error)
  return fromJsonSchema(name, { ...options, schema: inputSchema, timeout: timeoutMillis, handler })
}

/**
 * Checks a declaration of unknown origin and reports every problem with it.
 *
 * @example
 * ```ts
 * import { Tool } from "@allm/core"
 * import { Either } from "effect"
 *
 * const declared = { name: "ping", description: "Answers", inputSchema: { type: "object" } }
 *
 * assert.strictEqual(Either.isRight(Tool.validate(declared)), true)
 * assert.strictEqual(Either.isLeft(Tool.validate({ ...declared, name: "no spaces, please" })), true)
 * ```
 *
 * @since 0.1.0
 * @category decoding
 */
export const validate = (input: unknown): Either.Either<Declaration, ValidationError> =>
  Issues.decode("invalid_tool", Declaration, declarationIssues(input), input)

/**
 * Tells whether a value is a tool made here.
 *
 * @example
 * ```ts
 * import { Tool } from "@allm/core"
 *
 * const ping = Tool.make("ping", { description: "Answers" })
 *
 * assert.strictEqual(Tool.isTool(ping), true)
 * assert.strictEqual(Tool.isTool({ ...ping }), false)
 * ```
 *
 * @since 0.1.0
 * @category guards
 */
export const isTool: (value: unknown) => value is Any = Compiled.isRegistered

const toSchema = (parameters: unknown = {}): Either.Either<Schema.Schema.Any, string> => {
  if (Schema.isSchema(parameters)) return Either.right(parameters)
  if (!isPlainObject(parameters)) {
    return Either.left(`write fields such as { city: Schema.String }, or a Schema, not ${describe(parameters)}`)
  }
  const wrong = Object.entries(parameters).find(([, field]) => !isField(field))
  return wrong === undefined
    ? Either.right(Schema.Struct(parameters as Schema.Struct.Fields))
    : Either.left(`at ${formatPath([wrong[0]])} write a Schema such as Schema.String, not ${describe(wrong[1])}`)
}

const isField = (value: unknown): boolean => Schema.isSchema(value) || Schema.isPropertySignature(value)

const rootedInObject = (schema: JsonSchema.JsonSchema): Either.Either<JsonSchema.JsonSchema, string> =>
  schema["type"] === "object"
    ? Either.right(schema)
    : Either.left("arguments are always an object; wrap the schema in one, such as { input: … }")

/** The options of either constructor, read without trusting the types: they may come from plain JavaScript. */
interface Untyped {
  readonly [key: string]: unknown
}

const build = <T extends Any>(
  name: string,
  options: object,
  arguments_: {
    readonly known: ReadonlyArray<string>
    readonly field: string
    readonly inputSchema: Either.Either<JsonSchema.JsonSchema, string>
    readonly parameters: Schema.Schema.Any | undefined
    readonly decode: Compiled.Compiled["decode"]
  }
): T => {
  const given: Untyped = isPlainObject(options) ? options : {}
  const issues = [
    ...optionIssues(name, given, arguments_.known),
    ...Either.match(arguments_.inputSchema, {
      onLeft: (problem) => [Issues.issue([arguments_.field], "invalid_schema", problem)],
      onRight: () => []
    })
  ]
  Issues.orThrow("invalid_tool", issues, undefined)
  const tool = {
    name,
    description: given["description"],
    inputSchema: Either.getOrElse(arguments_.inputSchema, () => ({})),
    parameters: arguments_.parameters,
    success: given["success"],
    failure: given["failure"],
    handler: given["handler"],
    manual: given["manual"] ?? false,
    needsApproval: given["needsApproval"] ?? false,
    timeout: given["timeout"] === undefined ? undefined : positiveDuration(given["timeout"]),
    retry: given["retry"],
    replay: given["replay"] ?? "never",
    exclusive: keyOf(given["exclusive"]),
    metadata: given["metadata"] ?? {}
  }
  // The options were checked one by one above, for callers without types too.
  return Compiled.register(Object.freeze(tool) as unknown as T, {
    decode: arguments_.decode,
    encodeSuccess: Compiled.encoder(tool.success as Schema.Schema.Any | undefined),
    encodeFailure: Compiled.encoder(tool.failure as Schema.Schema.Any | undefined)
  })
}

// Two tools that take the same resource by the same parameter name exclude each other.
const keyOf = (exclusive: unknown): unknown =>
  typeof exclusive === "string"
    ? (params: Untyped) => `${exclusive}=${JSON.stringify(params[exclusive])}`
    : exclusive ?? false
