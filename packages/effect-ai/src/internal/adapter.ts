/**
 * Their language model as an adapter: one call of theirs per request, read as it comes.
 */
import { Adapter, AdapterError, type Request, Telemetry } from "@allm/core"
import type * as AiError from "@effect/ai/AiError"
import type * as LanguageModel from "@effect/ai/LanguageModel"
import type * as Prompt from "@effect/ai/Prompt"
import { CurrentSpanTransformer, type SpanTransformer } from "@effect/ai/Telemetry"
import type * as Tool from "@effect/ai/Tool"
import * as Cause from "effect/Cause"
import * as Chunk from "effect/Chunk"
import * as Effect from "effect/Effect"
import * as Either from "effect/Either"
import * as Metric from "effect/Metric"
import * as Option from "effect/Option"
import * as ParseResult from "effect/ParseResult"
import type * as Schema from "effect/Schema"
import * as Stream from "effect/Stream"
import { Answer } from "./answer.ts"
import { fromFailure } from "./errors.ts"
import { isEmpty } from "./json.ts"
import { toPrompt } from "./prompt.ts"
import { type KnownTools, knownTools, providerNames, verbatim } from "./tools.ts"

export interface Settings {
  readonly name: string
  readonly capabilities: Adapter.Capabilities
  readonly configure:
    | ((request: Request.Request) => <A, E, R>(effect: Effect.Effect<A, E, R>) => Effect.Effect<A, E, R>)
    | undefined
  readonly providerTools: ReadonlyArray<Tool.Any>
  readonly transformer: Option.Option<SpanTransformer>
}

export const make = (model: LanguageModel.Service, settings: Settings): Adapter.Service =>
  Adapter.make(
    (request, emit) => Effect.suspend(() => new Call(model, settings, request, emit).run()),
    { name: settings.name, capabilities: settings.capabilities }
  )

type Failure = AiError.AiError | AdapterError.AdapterError

/** A form of their framework's options that needs no types of tools. */
interface Asked {
  readonly prompt: Prompt.Prompt
  readonly toolkit: KnownTools
  readonly toolChoice: LanguageModel.ToolChoice<string>
  readonly disableToolCallResolution: true
}

class Call {
  private readonly model: LanguageModel.Service
  private readonly settings: Settings
  private readonly request: Request.Request
  private readonly emit: Adapter.Emit
  private readonly answer: Answer

  constructor(model: LanguageModel.Service, settings: Settings, request: Request.Request, emit: Adapter.Emit) {
    this.model = model
    this.settings = settings
    this.request = request
    this.emit = emit
    this.answer = new Answer(settings.name, settings.providerTools)
  }

  run(): Effect.Effect<void, AdapterError.AdapterError> {
    const { configure } = this.settings
    const lost = configure === undefined ? lostParameters(this.request) : []
    if (lost.length > 0) {
      return this.refused(
        "unsupported_feature",
        `a LanguageModel of @effect/ai takes no ${lost.join(", ")}; say how it is told with the option \`configure\``
      )
    }
    const prompt = toPrompt(this.request.messages, providerNames(this.settings.providerTools))
    if (Either.isLeft(prompt)) {
      return this.refused("invalid_request", `message ${prompt.left.index}: ${prompt.left.problem}`)
    }
    const asked: Asked = {
      prompt: prompt.right,
      toolkit: knownTools(this.request.tools, this.settings.providerTools),
      toolChoice: this.request.toolChoice ?? "auto",
      disableToolCallResolution: true
    }
    const run = this.ask(asked).pipe(
      Effect.catchAll((failure) => this.salvage(failure)),
      Effect.zipRight(Effect.suspend(() => this.end()))
    )
    return configure === undefined ? run : configure(this.request)(run)
  }

  private refused(reason: AdapterError.Reason, detail: string): Effect.Effect<never, AdapterError.AdapterError> {
    return Effect.fail(new AdapterError.AdapterError({ reason, provider: this.settings.name, detail }))
  }

  private ask(asked: Asked): Effect.Effect<void, Failure> {
    const format = this.request.responseFormat
    switch (format?.type) {
      case "json_schema":
        return this.askForObject(asked, format.name, verbatim(format.schema))
      case "json_object":
        return this.askForObject(asked, "json", verbatim({ type: "object" }))
      default:
        return Stream.runForEachChunk(this.model.streamText(asked), (parts) => this.read(parts))
    }
  }

  // Theirs asks for objects in one piece only. It then refuses texts that are no object, and answers that only call tools;
  // what it reads before that is what a transformer of spans gets to see.
  private askForObject(asked: Asked, objectName: string, schema: Schema.Schema<unknown>): Effect.Effect<void, Failure> {
    let seen: ReadonlyArray<unknown> | undefined
    const generate = this.model.generateObject({
      ...asked,
      objectName,
      schema: schema as Schema.Schema<unknown, Record<string, unknown>>
    })
    return Effect.flatMap(Effect.serviceOption(CurrentSpanTransformer), (current) => {
      const transformer = Option.getOrUndefined(Option.orElse(current, () => this.settings.transformer))
      const observed = Effect.provideService(generate, CurrentSpanTransformer, (options) => {
        seen = options.response
        transformer?.(options)
      })
      return Effect.matchEffect(observed, {
        onSuccess: ({ content }) => this.read(content),
        onFailure: (failure): Effect.Effect<void, Failure> =>
          seen === undefined ? Effect.fail(failure) : this.read(seen)
      })
    })
  }

  private read(parts: Iterable<unknown>): Effect.Effect<void, AdapterError.AdapterError> {
    let error: AdapterError.AdapterError | undefined
    for (const part of parts) {
      error = this.answer.add(part)
      if (error !== undefined) break
    }
    return Effect.zipRight(this.flush(), error === undefined ? Effect.void : Effect.fail(error))
  }

  private flush(): Effect.Effect<void> {
    const events = this.answer.taken()
    return events.length === 0 ? Effect.void : this.emit(events)
  }

  /**
   * Their side gives up on an answer when it calls a tool that is not there, or writes arguments that are not JSON. Both are
   * for the loop to answer, so the calls are kept.
   */
  private salvage(failure: Failure): Effect.Effect<void, AdapterError.AdapterError> {
    // It broke off after the last word.
    if (this.answer.isFinished) return Effect.void
    const error = Cause.originalError(failure) as Failure
    if (error instanceof AdapterError.AdapterError) return Effect.fail(error)
    const failed = Effect.flatMap(fromFailure(this.settings.name, failure), (read) => Effect.fail(read))
    if (error._tag !== "MalformedOutput") return failed
    return Effect.flatMap(this.read(refusedParts(error)), () => {
      if (this.answer.isFinished) return Effect.void
      if (!this.answer.hasUsableCalls) return failed
      this.answer.cutShort()
      return Effect.zipRight(
        Effect.logWarning("@effect/ai could not read a tool call; it is kept, what came after it is not"),
        Metric.increment(Metric.tagged(Telemetry.unreadableFrames, "provider", this.settings.name))
      )
    })
  }

  private end(): Effect.Effect<void, AdapterError.AdapterError> {
    const error = this.answer.end()
    return Effect.zipRight(this.flush(), error === undefined ? Effect.void : Effect.fail(error))
  }
}

/** What a request says that theirs has no place for. Its model is the one it was made for. */
const lostParameters = (request: Request.Request): ReadonlyArray<string> => [
  ...(request.temperature === undefined ? [] : ["temperature"]),
  ...(request.maxTokens === undefined ? [] : ["maxTokens"]),
  ...(isEmpty(request.options) ? [] : [`params (${Object.keys(request.options).join(", ")})`])
]

/** The parts that their framework read and refused. */
const refusedParts = ({ cause }: AiError.MalformedOutput): Iterable<unknown> => {
  if (!ParseResult.isParseError(cause)) return []
  const { issue } = cause
  const { actual } = issue
  return Chunk.isChunk(actual) || Array.isArray(actual) ? actual : []
}
