/**
 * Everything about a call, decided: its options over its engine's over the defaults.
 */
import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Either from "effect/Either"
import type * as Schedule from "effect/Schedule"
import * as Schema from "effect/Schema"
import * as AdapterError from "../AdapterError.ts"
import type { Options } from "../Allm.ts"
import * as Engine from "../Engine.ts"
import type { AdapterEvent } from "../Event.ts"
import type { Request, ResponseFormat } from "../Request.ts"
import * as Tool from "../Tool.ts"
import type { Issue, ValidationError } from "../ValidationError.ts"
import { callIssues } from "./engineOptions.ts"
import { bound, environmentOf, toolEnvironment } from "./environments.ts"
import type { Start } from "./input.ts"
import * as Issues from "./issues.ts"
import { show } from "./json.ts"
import * as JsonSchema from "./jsonSchema.ts"
import { resolve as resolveRun, type Settings as RunSettings } from "./runBatch.ts"
import { positiveDuration } from "./toolOptions.ts"

type Settings = Engine.Service["settings"]

export interface CallSettings {
  readonly engine: Engine.Service
  readonly tools: ReadonlyMap<string, Tool.Any>
  readonly declarations: ReadonlyArray<Tool.Declaration>
  /** Every request of the call, but for its messages and its tools. */
  readonly base: Omit<Request, "messages" | "tools" | "responseFormat">
  readonly responseFormat: ResponseFormat | undefined
  readonly mode: "auto" | "manual"
  readonly maxTurns: number
  readonly haltWhen: Settings["haltWhen"]
  readonly prepareStep: Settings["prepareStep"]
  readonly onEvent: Settings["onEvent"]
  readonly isForwarded: (event: AdapterEvent) => boolean
  readonly run: RunSettings
  readonly unknownTool: "fail" | "feedback"
  readonly retry: Schedule.Schedule<unknown, AdapterError.AdapterError> | undefined
  readonly requestTimeout: number
  readonly idleTimeout: number
  readonly structuredFinalize: boolean | undefined
  readonly finalizeNudge: string
  readonly budget: {
    readonly maxToolCalls: number
    readonly maxTokens: number
    readonly maxDuration: number
    readonly maxRepeatedCalls: number
  }
  readonly softLanding: string | undefined
}

const defaultRetry = AdapterError.retrySchedule()
const defaultRequestTimeout = Duration.toMillis("10 minutes")
const defaultFinalizeNudge = "Now provide your final structured response."
const defaultLanding = "A limit is reached. Answer now with what you have, without calling tools."

export const resolve = (
  engine: Engine.Service,
  start: Start,
  options: Options,
  requestId: string,
  services: Context.Context<never>
): Either.Either<CallSettings, ValidationError> => {
  const problems = callIssues(options)
  if (problems.length > 0) return Issues.toEither("invalid_options", problems, nothing)
  const isOrdinary = start.request === undefined && Object.keys(options).length === 0
  const decided = isOrdinary ? ordinary(engine) : decide(engine, start.request, options, services)
  const call: CallSettings = {
    ...decided,
    run: { ...decided.run, shared: { ...decided.run.shared, sessionId: options.sessionId, requestId } }
  }
  return Either.flatMap(
    Issues.toEither("invalid_options", combinationIssues(call), call),
    () => Issues.toEither("unsupported_capability", capabilityIssues(call, start), call)
  )
}

// Most calls bring nothing of their own, and an engine never changes.
const ordinaries = new WeakMap<Engine.Service, CallSettings>()

const ordinary = (engine: Engine.Service): CallSettings => {
  let decided = ordinaries.get(engine)
  if (decided === undefined) ordinaries.set(engine, decided = decide(engine, undefined, {}, undefined))
  return decided
}

const callbacks = ["haltWhen", "prepareStep", "onEvent", "onToolError"] as const

/** Settings whose functions find the services of the engine or of the call, whichever they were given to. */
const withServices = (settings: Settings, services: Context.Context<never> | undefined): Settings => {
  const given = callbacks.filter((name) => typeof settings[name] === "function")
  return given.length === 0
    ? settings
    : { ...settings, ...Object.fromEntries(given.map((name) => [name, bound(settings[name], services)])) }
}

const decide = (
  engine: Engine.Service,
  request: Request | undefined,
  options: Options,
  services: Context.Context<never> | undefined
): CallSettings => {
  const { approvals, requestId: _requestId, sessionId: _sessionId, tools: given = [], ...own } = options
  const settings = Engine.merge<Settings>(
    withServices(engine.settings, environmentOf(engine)),
    withServices(own as Settings, services)
  )
  const tools = Engine.mergeTools(engine.tools, given)
  const declared = request !== undefined && request.tools.length > 0 ? request.tools : tools.map(declarationOf)
  return {
    engine,
    tools: withDeclared(tools, declared),
    declarations: declared,
    base: baseOf(settings, request),
    responseFormat: formatOf(request?.responseFormat ?? settings.responseFormat),
    mode: settings.mode ?? "auto",
    maxTurns: settings.maxTurns ?? 8,
    haltWhen: settings.haltWhen,
    prepareStep: settings.prepareStep,
    onEvent: settings.onEvent,
    isForwarded: forwarding(settings),
    run: {
      ...resolveRun({ ...settings, approvals } as Parameters<typeof resolveRun>[0]),
      shared: { context: settings.context ?? {}, sessionId: undefined, requestId: undefined, engine },
      environmentOf: toolEnvironment(engine, given),
      fallback: environmentOf(engine)
    },
    unknownTool: settings.unknownTool ?? "fail",
    retry: settings.retry === false ? undefined : settings.retry ?? defaultRetry,
    requestTimeout: millisOr(settings.requestTimeout, defaultRequestTimeout),
    idleTimeout: millisOr(settings.idleTimeout, Infinity),
    structuredFinalize: settings.structuredFinalize,
    finalizeNudge: settings.structuredFinalizeNudge ?? defaultFinalizeNudge,
    budget: {
      maxToolCalls: settings.budget?.maxToolCalls ?? Infinity,
      maxTokens: settings.budget?.maxTokens ?? Infinity,
      maxDuration: millisOr(settings.budget?.maxDuration, Infinity),
      maxRepeatedCalls: settings.budget?.maxRepeatedCalls ?? Infinity
    },
    softLanding: settings.softLanding === true ? defaultLanding : settings.softLanding || undefined
  }
}

const nothing = undefined as unknown as CallSettings

const millisOr = (input: Duration.DurationInput | undefined, otherwise: number): number =>
  input === undefined ? otherwise : Duration.toMillis(positiveDuration(input)!)

const declarations = new WeakMap<Tool.Any, Tool.Declaration>()

const declarationOf = (tool: Tool.Any): Tool.Declaration => {
  let declaration = declarations.get(tool)
  if (declaration === undefined) declarations.set(tool, declaration = Tool.declaration(tool))
  return declaration
}

// A tool that a request declares and nobody runs may still have its handler in the executor.
const withDeclared = (
  tools: ReadonlyArray<Tool.Any>,
  declared: ReadonlyArray<Tool.Declaration>
): ReadonlyMap<string, Tool.Any> => {
  const byName = new Map(tools.map((tool) => [tool.name, tool]))
  for (const { inputSchema, name, timeoutMillis, ...rest } of declared) {
    if (!byName.has(name)) {
      byName.set(name, Tool.fromJsonSchema(name, { ...rest, schema: inputSchema, timeout: timeoutMillis }))
    }
  }
  return byName
}

const baseOf = (settings: Settings, request: Request | undefined): CallSettings["base"] => {
  const { maxTokens: paramTokens, temperature: paramTemperature, ...params } = settings.params ?? {}
  const model = request?.model ?? settings.model
  const temperature = request?.temperature ?? settings.temperature ?? paramTemperature as number | undefined
  const maxTokens = request?.maxTokens ?? settings.maxTokens ?? paramTokens as number | undefined
  const toolChoice = request?.toolChoice ?? settings.toolChoice
  return {
    ...(model === undefined ? {} : { model }),
    ...(temperature === undefined ? {} : { temperature }),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ...(toolChoice === undefined ? {} : { toolChoice }),
    options: { ...params, ...request?.options },
    metadata: request?.metadata ?? {}
  }
}

const formats = new WeakMap<object, ResponseFormat>()

const formatOf = (given: Settings["responseFormat"]): ResponseFormat | undefined => {
  if (!Schema.isSchema(given)) return given
  let format = formats.get(given)
  if (format === undefined) formats.set(given, format = formatFromSchema(given))
  return format
}

/** The form an answer has to take to fit a schema. */
const formatFromSchema = (schema: Schema.Schema.Any): ResponseFormat => ({
  type: "json_schema",
  name: JsonSchema.nameOf(schema) ?? "response",
  schema: JsonSchema.fromSchema(schema),
  strict: true
})

const forwarding = (settings: Settings): CallSettings["isForwarded"] => {
  const { emitTextDeltas = true, emitToolDeltas = true, includeRawChunks = false } = settings
  return (event) => {
    switch (event._tag) {
      case "TextDelta":
        return emitTextDeltas
      case "ToolCallDelta":
        return emitToolDeltas
      case "RawChunk":
        return includeRawChunks
      default:
        return true
    }
  }
}

const combinationIssues = (call: CallSettings): ReadonlyArray<Issue> => {
  const { toolChoice } = call.base
  const named = typeof toolChoice === "object" ? toolChoice.tool : undefined
  const names = call.declarations.map((tool) => show(tool.name))
  return [
    ...(named === undefined || call.tools.has(named) ? [] : [
      Issues.issue(
        ["toolChoice"],
        "unknown_tool",
        `no tool is named ${show(named)}; ${names.length === 0 ? "there are none" : `write ${names.join(" or ")}`}`
      )
    ]),
    ...(toolChoice === "required" && names.length === 0
      ? [Issues.issue(["toolChoice"], "unknown_tool", "a tool is required but there are none; add tools")]
      : []),
    ...(call.structuredFinalize === true && (call.responseFormat === undefined || call.responseFormat.type === "text")
      ? [
        Issues.issue(
          ["structuredFinalize"],
          "requires_json_schema",
          "there is no form to give the answer; write responseFormat too"
        )
      ]
      : [])
  ]
}

/** What the model cannot do, as far as its adapter tells, all at once. */
const capabilityIssues = (call: CallSettings, start: Start): ReadonlyArray<Issue> => {
  const { capabilities, name } = call.engine.adapter
  const found: Array<Issue> = []
  if (capabilities.tools === false && call.declarations.length > 0) {
    found.push(Issues.issue(["tools"], "tools_disabled", `${name} cannot call tools; leave them out`))
  }
  if (capabilities.structuredOutput === false && call.responseFormat?.type === "json_schema") {
    found.push(Issues.issue(
      ["responseFormat"],
      "json_native_disabled",
      `${name} cannot follow a schema; write { type: "json_object" } and ask for the fields in words`
    ))
  }
  if (capabilities.images === false) {
    start.thread.messages.forEach((message, index) => {
      if (typeof message.content !== "string" && message.content.some((part) => part.type === "image")) {
        found.push(Issues.issue(["messages", index], "vision_disabled", `${name} cannot see images; describe them`))
      }
    })
  }
  return found
}
