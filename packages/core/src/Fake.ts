/**
 * A scripted model for tests and examples: no network, no keys, time only through the Clock.
 *
 * @since 0.1.0
 */
import * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Adapter from "./Adapter.ts"
import { AdapterError, Reason } from "./AdapterError.ts"
import * as Engine from "./Engine.ts"
import type { AdapterEvent } from "./Event.ts"
import * as Issues from "./internal/issues.ts"
import { describe } from "./internal/json.ts"
import { unknownOptions } from "./internal/runOptions.ts"
import { positiveDuration } from "./internal/toolOptions.ts"
import type { Request } from "./Request.ts"
import type { FinishReason } from "./Response.ts"
import type * as Tool from "./Tool.ts"
import * as ToolCall from "./ToolCall.ts"
import type { Usage } from "./Usage.ts"

/**
 * One thing a scripted model does.
 *
 * @since 0.1.0
 * @category models
 */
export type Entry =
  | { readonly _tag: "Text"; readonly text: string }
  | { readonly _tag: "Reasoning"; readonly text: string }
  | { readonly _tag: "ToolCall"; readonly toolCall: ToolCall.ToolCall }
  | { readonly _tag: "ToolCallDelta"; readonly id: string; readonly name: string | undefined; readonly delta: string }
  | { readonly _tag: "Usage"; readonly usage: Usage }
  | { readonly _tag: "Finish"; readonly reason: FinishReason }
  | { readonly _tag: "Error"; readonly error: AdapterError; readonly isPreflight: boolean }
  | { readonly _tag: "Delay"; readonly duration: Duration.Duration }
  | { readonly _tag: "Raw"; readonly chunk: unknown }

/**
 * What a model does when asked once.
 *
 * @since 0.1.0
 * @category models
 */
export type Script = ReadonlyArray<Entry>

/**
 * What a scripted model answers, and how. Give one of `script`, `scripts` and `respond`.
 *
 * @since 0.1.0
 * @category models
 */
export interface Options {
  /** The only answer. Asking again finds nothing. */
  readonly script?: Script | undefined
  /** One answer per model call, in order. */
  readonly scripts?: ReadonlyArray<Script> | undefined
  /** Answers by what was asked, for as long as one asks. */
  readonly respond?: ((request: Request, index: number) => Script) | undefined
  /** How long the model takes before each of its entries. */
  readonly delay?: Duration.DurationInput | undefined
  /** The usage of every answer. Beats what a script says. */
  readonly usage?: Usage | undefined
  /** Hears of every request before it is answered. */
  readonly record?: ((request: Request) => void | Effect.Effect<void>) | undefined
  readonly name?: string | undefined
  readonly capabilities?: Adapter.Capabilities | undefined
}

/**
 * What a fake model has seen.
 *
 * @since 0.1.0
 * @category services
 */
export class Fake extends Context.Tag("@allm/core/Fake")<Fake, {
  /** What was asked so far, in order. */
  readonly requests: Effect.Effect<ReadonlyArray<Request>>
  /** Answers that are being given right now. */
  readonly open: Effect.Effect<number>
  /** Answers that have ended: completely, by an error, or because nobody listened any more. */
  readonly closed: Effect.Effect<number>
}>() {}

/**
 * Text, as one delta.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Allm.generate("Hi").pipe(
 *   Effect.provide(Fake.engine({ script: [Fake.text("Hel"), Fake.text("lo"), Fake.finish("stop")] }))
 * )
 *
 * assert.strictEqual(Effect.runSync(program).outputText, "Hello")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const text = (text: string): Entry => ({ _tag: "Text", text })

/**
 * Thoughts, as one delta.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect, Option, Stream } from "effect"
 *
 * const program = Allm.streamGenerate("Hi").pipe(
 *   Stream.filterMap((event) => event._tag === "ReasoningDelta" ? Option.some(event.delta) : Option.none()),
 *   Stream.mkString,
 *   Effect.provide(Fake.engine({ script: [Fake.reasoning("Greet back."), Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 *
 * assert.strictEqual(await Effect.runPromise(program), "Greet back.")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const reasoning = (text: string): Entry => ({ _tag: "Reasoning", text })

/**
 * A complete tool call. `rawArguments` is the text as a model writes it, so it may be broken JSON. It does not end the
 * answer: write `Fake.finish("tool_calls")` after the last one.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const script = [
 *   Fake.toolCall({ id: "c0", name: "add", arguments: { a: 2, b: 3 } }),
 *   Fake.toolCall({ id: "c1", name: "add", rawArguments: "{\"a\":" }),
 *   Fake.finish("tool_calls")
 * ]
 * const program = Effect.provide(Allm.generate("2 + 3?"), Fake.engine({ script }))
 *
 * const [good, broken] = Effect.runSync(program).toolCalls
 *
 * assert.deepStrictEqual(good?.arguments, { a: 2, b: 3 })
 * assert.strictEqual(broken?.arguments, undefined)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const toolCall = (input: {
  readonly id: string
  readonly name: string
  readonly arguments?: unknown
  readonly rawArguments?: string | undefined
  readonly metadata?: { readonly [key: string]: unknown } | undefined
}): Entry => {
  const { arguments: args = {}, rawArguments, ...rest } = input
  return {
    _tag: "ToolCall",
    toolCall: rawArguments === undefined || input.arguments !== undefined
      ? ToolCall.make({ ...rest, rawArguments, arguments: args })
      : ToolCall.fromRaw({ ...rest, rawArguments })
  }
}

/**
 * A piece of a call's arguments. The first one of a call names its tool.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const script = [
 *   Fake.toolCallDelta({ id: "c0", name: "add", delta: "{\"a\":2," }),
 *   Fake.toolCallDelta({ id: "c0", delta: "\"b\":3}" }),
 *   Fake.finish("tool_calls")
 * ]
 * const program = Effect.provide(Allm.generate("2 + 3?"), Fake.engine({ script }))
 *
 * assert.deepStrictEqual(Effect.runSync(program).toolCalls[0]?.arguments, { a: 2, b: 3 })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const toolCallDelta = (input: {
  readonly id: string
  readonly name?: string | undefined
  readonly delta: string
}): Entry => ({ _tag: "ToolCallDelta", id: input.id, name: input.name, delta: input.delta })

/**
 * The tokens of this answer.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const script = [Fake.text("Hello"), Fake.usage({ inputTokens: 8, outputTokens: 1 }), Fake.finish("stop")]
 * const program = Effect.provide(Allm.chat("Hi"), Fake.engine({ script }))
 *
 * assert.deepStrictEqual(Effect.runSync(program).usage, { inputTokens: 8, outputTokens: 1 })
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const usage = (usage: Usage): Entry => ({ _tag: "Usage", usage })

/**
 * The end of the answer, and why it is one. Without it the answer ends without a reason.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Allm.generate("Hi").pipe(
 *   Effect.provide(Fake.engine({ script: [Fake.text("Hello, this is a lo"), Fake.finish("length")] }))
 * )
 *
 * assert.strictEqual(Effect.runSync(program).finishReason, "length")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const finish = (reason: FinishReason): Entry => ({ _tag: "Finish", reason })

/**
 * An error in the middle of the answer; what came before it is kept.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Allm.chat("Hi").pipe(
 *   Effect.provide(Fake.engine({ script: [Fake.text("Hel"), Fake.error("network_error")] }))
 * )
 *
 * const { error, finalResponse, haltedReason } = Effect.runSync(program)
 *
 * assert.strictEqual(haltedReason, "error")
 * assert.strictEqual(error?._tag, "AdapterError")
 * assert.strictEqual(finalResponse.outputText, "Hel")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const error = (error: AdapterError | Reason | (string & {})): Entry => ({
  _tag: "Error",
  error: toError(error),
  isPreflight: false
})

/**
 * An error before the answer begins: the call fails, and may be repeated.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.flip(Allm.generate("Hi", { retry: false })).pipe(
 *   Effect.provide(Fake.engine({ script: [Fake.preflightError("rate_limited")] }))
 * )
 *
 * const error = Effect.runSync(program)
 *
 * assert.strictEqual(error._tag === "AdapterError" && error.reason, "rate_limited")
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const preflightError = (error: AdapterError | Reason | (string & {})): Entry => ({
  _tag: "Error",
  error: toError(error),
  isPreflight: true
})

/**
 * A pause, on the Clock.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Duration, Effect } from "effect"
 *
 * const program = Allm.generate("Hi").pipe(
 *   Effect.timed,
 *   Effect.map(([waited]) => Duration.toMillis(waited) >= 20),
 *   Effect.provide(Fake.engine({ script: [Fake.delay("20 millis"), Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 *
 * assert.strictEqual(await Effect.runPromise(program), true)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const delay = (duration: Duration.DurationInput): Entry => ({
  _tag: "Delay",
  duration: Duration.decode(duration)
})

/**
 * A chunk as the provider sent it.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect, Stream } from "effect"
 *
 * const program = Allm.streamGenerate("Hi", { includeRawChunks: true }).pipe(
 *   Stream.filter((event) => event._tag === "RawChunk"),
 *   Stream.runCollect,
 *   Effect.provide(Fake.engine({ script: [Fake.raw({ id: 1 }), Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 *
 * assert.deepStrictEqual(Array.from(await Effect.runPromise(program)), [{ _tag: "RawChunk", chunk: { id: 1 } }])
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const raw = (chunk: unknown): Entry => ({ _tag: "Raw", chunk })

const reasons: ReadonlySet<string> = new Set(Reason.literals)

const toError = (error: AdapterError | string): AdapterError => {
  if (error instanceof AdapterError) return error
  return reasons.has(error)
    ? new AdapterError({ reason: error as Reason, provider: "fake" })
    : new AdapterError({ reason: "unknown", provider: "fake", detail: "scripted error", cause: error })
}

/**
 * Makes a scripted adapter with a cursor of its own. Wrong options throw a `ValidationError` at once.
 *
 * @example
 * ```ts
 * import { Adapter, Allm, Engine, Fake } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const program = Effect.gen(function*() {
 *   const { adapter, fake } = yield* Fake.make({ script: [Fake.text("Hello"), Fake.finish("stop")] })
 *   yield* Effect.provide(Allm.generate("Hi"), Layer.provide(Engine.layer(), Adapter.layer(adapter)))
 *   return yield* fake.requests
 * })
 *
 * assert.strictEqual(Effect.runSync(program).length, 1)
 * ```
 *
 * @since 0.1.0
 * @category constructors
 */
export const make = (
  options: Options
): Effect.Effect<{ readonly adapter: Adapter.Service; readonly fake: Context.Tag.Service<Fake> }> => {
  const answer = checked(options)
  return Effect.sync(() => {
    const requests: Array<Request> = []
    let open = 0
    let closed = 0
    const generate = (request: Request, emit: Adapter.Emit): Effect.Effect<void, AdapterError> =>
      Effect.suspend(() => {
        const index = requests.length
        requests.push(request)
        const told = options.record?.(request)
        const script = answer(request, index)
        const play = script === undefined
          ? Effect.fail(
            new AdapterError({ reason: "no_scripted_response", provider: "fake", detail: exhausted(index) })
          )
          : perform(script, emit, options)
        return Effect.isEffect(told) ? Effect.zipRight(told, play) : play
      })
    return {
      adapter: Adapter.make((request, emit) =>
        Effect.acquireUseRelease(
          Effect.sync(() => {
            open++
          }),
          () => generate(request, emit),
          () =>
            Effect.sync(() => {
              open--
              closed++
            })
        ), { name: options.name ?? "fake", capabilities: options.capabilities }),
      fake: {
        requests: Effect.sync(() => requests.slice()),
        open: Effect.sync(() => open),
        closed: Effect.sync(() => closed)
      }
    }
  })
}

const exhausted = (index: number): string =>
  `no scripted response is left for model call ${index + 1}; script one more call, or check why it was made`

/**
 * Provides a scripted adapter, and what it has seen.
 *
 * @example
 * ```ts
 * import { Allm, Engine, Fake } from "@allm/core"
 * import { Effect, Layer } from "effect"
 *
 * const Assistant = Engine.layer({ model: "small" }).pipe(
 *   Layer.provideMerge(Fake.layer({ script: [Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 * const program = Effect.zipRight(Allm.generate("Hi"), Fake.requests)
 *
 * assert.strictEqual(Effect.runSync(Effect.provide(program, Assistant))[0]?.model, "small")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const layer = (options: Options): Layer.Layer<Adapter.Adapter | Fake> => {
  const making = make(options)
  return Layer.effectContext(
    Effect.map(making, ({ adapter, fake }) => Context.make(Adapter.Adapter, adapter).pipe(Context.add(Fake, fake)))
  )
}

/**
 * Provides an engine on a scripted adapter: what most tests need.
 *
 * @example
 * ```ts
 * import { Allm, Fake } from "@allm/core"
 * import { Effect } from "effect"
 *
 * const program = Effect.map(Allm.chat("Hi"), (result) => result.finalResponse.outputText).pipe(
 *   Effect.provide(Fake.engine({ maxTurns: 2, script: [Fake.text("Hello"), Fake.finish("stop")] }))
 * )
 *
 * assert.strictEqual(Effect.runSync(program), "Hello")
 * ```
 *
 * @since 0.1.0
 * @category layers
 */
export const engine = <T extends Tool.Any = never, RE = never, RH = never, RP = never, RO = never>(
  options: Options & Engine.Options<T, RE, RH, RP, RO>
): Layer.Layer<
  Engine.Engine | Fake,
  never,
  Exclude<Tool.Requirements<NoInfer<T>> | NoInfer<RE | RH | RP | RO>, Adapter.Adapter | Fake>
> => {
  const { capabilities, delay, name, record, respond, script, scripts, usage, ...rest } = options
  return Layer.provideMerge(
    Engine.layer(rest as unknown as Engine.Options<T, RE, RH, RP, RO>),
    layer({ capabilities, delay, name, record, respond, script, scripts, usage })
  )
}

/**
 * The requests the model has seen, in order.
 *
 * @since 0.1.0
 * @category testing
 */
export const requests: Effect.Effect<ReadonlyArray<Request>, never, Fake> = Effect.flatMap(
  Fake,
  (fake) => fake.requests
)

const checked = (options: Options): (request: Request, index: number) => Script | undefined => {
  const given = (["script", "scripts", "respond"] as const).filter((key) => options[key] !== undefined)
  const [way] = given
  Issues.orThrow("invalid_options", [
    ...unknownOptions(known, options),
    ...(given.length > 1
      ? [Issues.issue([given[1]!], "conflict", `write either ${given.join(" or ")}, not both`)]
      : []),
    ...(options.script === undefined || isScript(options.script) ? [] : [notAScript(["script"], options.script)]),
    ...(options.scripts === undefined ? [] : scriptsIssues(options.scripts)),
    ...(options.delay === undefined || positiveDuration(options.delay) !== undefined
      ? []
      : [Issues.issue(["delay"], "must_be_positive", "write a positive duration such as \"10 millis\"")])
  ], undefined)
  switch (way) {
    case "respond":
      return options.respond!
    case "scripts":
      return (_request, index) => options.scripts![index]
    default:
      return (_request, index) => index === 0 ? options.script : undefined
  }
}

const known = ["script", "scripts", "respond", "delay", "usage", "record", "name", "capabilities"]

const isScript = (value: unknown): boolean =>
  Array.isArray(value) &&
  value.every((entry: unknown) => typeof entry === "object" && entry !== null && "_tag" in entry)

const notAScript = (path: Issues.IssuePath, value: unknown) =>
  Issues.issue(
    path,
    "invalid_type",
    `write a list of entries such as [Fake.text("hi"), Fake.finish("stop")], not ${describe(value)}`
  )

const scriptsIssues = (scripts: unknown) =>
  Array.isArray(scripts)
    ? scripts.flatMap((script: unknown, index) => isScript(script) ? [] : [notAScript(["scripts", index], script)])
    : [notAScript(["scripts"], scripts)]

/** Plays a script: what stands between two pauses is emitted at once. */
const perform = (script: Script, emit: Adapter.Emit, options: Options): Effect.Effect<void, AdapterError> =>
  Effect.suspend(() => {
    const [first] = script
    if (first?._tag === "Error" && first.isPreflight) return Effect.fail(first.error)
    const player = new Player(options.usage)
    const pause = options.delay === undefined ? undefined : Duration.decode(options.delay)
    const parts: Array<Effect.Effect<void, AdapterError>> = []
    let gathered: Array<AdapterEvent> = [{ _tag: "MessageStarted" }]
    const flush = (): void => {
      if (gathered.length > 0) parts.push(emit(gathered))
      gathered = []
    }
    for (const entry of script) {
      const wait = entry._tag === "Delay" ? entry.duration : pause
      if (wait !== undefined) {
        flush()
        parts.push(Effect.sleep(wait))
      }
      player.play(entry, gathered)
    }
    player.end(gathered, script.length === 0)
    flush()
    return Effect.forEach(parts, (part) => part, { discard: true })
  })

class Player {
  private readonly beats: Usage | undefined
  private usage: Usage | undefined
  private text = ""
  private readonly drafts = new Map<string, { name: string; raw: string }>()
  private hasFinished = false

  constructor(usage: Usage | undefined) {
    this.beats = usage
  }

  play(entry: Entry, out: Array<AdapterEvent>): void {
    switch (entry._tag) {
      case "Text":
        this.text += entry.text
        out.push({ _tag: "TextDelta", delta: entry.text })
        return
      case "Reasoning":
        out.push({ _tag: "ReasoningDelta", delta: entry.text })
        return
      case "ToolCall": {
        const { id, name } = entry.toolCall
        out.push(
          { _tag: "ToolCallStarted", toolCallId: id, toolName: name },
          { _tag: "ToolCallCompleted", toolCall: entry.toolCall }
        )
        return
      }
      case "ToolCallDelta":
        return this.delta(entry, out)
      case "Usage":
        this.usage = entry.usage
        return
      case "Finish":
        return this.finish(entry.reason, out)
      case "Error":
        out.push({ _tag: "ErrorOccurred", error: entry.error })
        return
      case "Raw":
        out.push({ _tag: "RawChunk", chunk: entry.chunk })
        return
      case "Delay":
        return
    }
  }

  private delta(entry: Extract<Entry, { readonly _tag: "ToolCallDelta" }>, out: Array<AdapterEvent>): void {
    let draft = this.drafts.get(entry.id)
    if (draft === undefined) {
      this.drafts.set(entry.id, draft = { name: entry.name ?? "", raw: "" })
      out.push({ _tag: "ToolCallStarted", toolCallId: entry.id, toolName: draft.name })
    }
    draft.raw += entry.delta
    out.push({ _tag: "ToolCallDelta", toolCallId: entry.id, delta: entry.delta })
  }

  private finish(reason: FinishReason | undefined, out: Array<AdapterEvent>, metadata = {}): void {
    this.hasFinished = true
    for (const [id, { name, raw: rawArguments }] of this.drafts) {
      if (name !== "") out.push({ _tag: "ToolCallCompleted", toolCall: ToolCall.fromRaw({ id, name, rawArguments }) })
    }
    if (this.text !== "") out.push({ _tag: "TextCompleted", text: this.text })
    const usage = this.beats ?? this.usage
    out.push({
      _tag: "MessageCompleted",
      ...(reason === undefined ? {} : { finishReason: reason }),
      ...(usage === undefined ? {} : { usage }),
      metadata
    })
  }

  end(out: Array<AdapterEvent>, isEmpty: boolean): void {
    if (isEmpty) this.finish("stop", out, { emptyScript: true })
    else if (!this.hasFinished) this.finish(undefined, out)
  }
}
