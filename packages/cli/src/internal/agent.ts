/**
 * An agent: a loaded module, or the embedded one; and an engine of it on a model.
 */
import * as Adapter from "@allm/core/Adapter"
import * as Engine from "@allm/core/Engine"
import * as Tool from "@allm/core/Tool"
import type { NodeContext } from "@effect/platform-node/NodeContext"
import * as FetchHttpClient from "@effect/platform/FetchHttpClient"
import type * as HttpClient from "@effect/platform/HttpClient"
import * as Cause from "effect/Cause"
import type { ConfigError } from "effect/ConfigError"
import * as Console from "effect/Console"
import * as Context from "effect/Context"
import * as Data from "effect/Data"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import * as NodeFs from "node:fs"
import * as NodePath from "node:path"
import * as NodeUrl from "node:url"
import * as DemoTools from "./demo/tools.ts"
import { keyVariables, type Model } from "./models.ts"

/** An agent that cannot be used; the message says what to write instead. */
export class AgentError extends Schema.TaggedError<AgentError>("@allm/cli/agent/AgentError")("AgentError", {
  agent: Schema.String,
  detail: Schema.String,
  /** Whether the command was given something that is no agent, rather than one that is broken. */
  isWrongUse: Schema.Boolean
}) {
  override get message(): string {
    return `${this.agent}: ${this.detail}`
  }
}

export interface Agent {
  readonly name: string
  /** Where its module is; nowhere when it is the embedded one. */
  readonly file: string | undefined
  /** The system message of a new session. */
  readonly instructions: string | undefined
  /** What is said when nothing else is. */
  readonly prompt: string | undefined
  /** Things to try, shown at the start of a chat. */
  readonly suggestions: ReadonlyArray<string>
  readonly engine: EngineLayer
}

/** It takes its adapter from outside, or brings one of its own. */
type EngineLayer = Layer.Layer<Engine.Engine, AgentError, Adapter.Adapter | HttpClient.HttpClient | NodeContext>

/** The embedded agent: real tools, whose files are those below `root`. */
export const demo = (options: { readonly root: string }): Agent => ({
  name: "demo",
  file: undefined,
  instructions:
    "You are an assistant in a terminal. Use the tools for whatever they can find out. Be brief and exact, " +
    "say which tools failed, and never invent a result.",
  prompt:
    "Show me what you can do: what time is it in Tokyo and Oslo, how much is 2 * (3 + 4)^2, and which files are here? " +
    "Try the slow, the stubborn, the flaky and the broken tool at the same time.",
  suggestions: [
    "What time is it in Tokyo?",
    "What is 2 * (3 + 4)^2?",
    "What is in README.md?",
    "Write a note that says hello",
    "Ask me something",
    "Try everything at once"
  ],
  engine: Engine.layer({ tools: DemoTools.tools(options.root), concurrency: "unbounded", unknownTool: "feedback" })
})

/** What an engine runs on, such as `openai/gpt-5-mini`. */
export const labelOf = ({ adapter, settings }: Engine.Service): string =>
  settings.model === undefined ? adapter.name : `${adapter.name}/${settings.model}`

/** That of the engine in use. */
export const label: Effect.Effect<string, never, Engine.Engine> = Effect.map(Engine.Engine, labelOf)

/**
 * The engine of an agent on a model. An agent that brings an adapter of its own keeps it, and its model.
 */
export const engine = (
  agent: Agent,
  model: Model
): Layer.Layer<Engine.Engine, AgentError | ConfigError, NodeContext> =>
  Layer.scoped(
    Engine.Engine,
    Effect.gen(function*() {
      const given = yield* Layer.build(model.adapter)
      const built = yield* Effect.provide(Layer.build(agent.engine), given)
      // The types of a module are not known to hold.
      const engine = Context.getOption(built, Engine.Engine)
      if (Option.isNone(engine)) return yield* refuse(agent.name, noEngine)
      return yield* equipped(agent, model, engine.value, Context.get(given, Adapter.Adapter))
    })
  ).pipe(Layer.provide(FetchHttpClient.layer))

const equipped = Effect.fnUntraced(function*(
  agent: Agent,
  model: Model,
  engine: Engine.Service,
  adapter: Adapter.Service
) {
  if (!engine.tools.every(Tool.isTool)) return yield* refuse(agent.name, otherCopy)
  if (engine.adapter !== adapter) {
    if (model.origin === "option") {
      yield* Console.error(`${agent.name} brings a model of its own, ${labelOf(engine)}; ${model.label} is not used.`)
    }
    return engine
  }
  if (model.origin === "none" && agent.file !== undefined) return yield* refuse(agent.name, noModel)
  const isOwnName = engine.settings.model !== undefined && (model.origin === "key" || model.origin === "none")
  return model.name === undefined || isOwnName ? engine : Engine.withModel(engine, model.name)
})

const refuse = (agent: string, detail: string): AgentError => new AgentError({ agent, detail, isWrongUse: true })

const broken = (agent: string, detail: string): AgentError => new AgentError({ agent, detail, isWrongUse: false })

const noModel = `there is no model for it: set ${keyVariables.join(", ")}, or write --model provider/name, ` +
  "or --model demo for the embedded one."

const asModule = "write \"type\": \"module\" into its package.json, or name it .mts or .mjs"

const otherCopy =
  `it uses another copy of @allm/core than this command; install both in the same project, and ${asModule}.`

const example = [
  "  import { Engine } from \"@allm/core\"",
  "  export const instructions = \"Be brief.\"",
  "  export default Engine.layer({ tools: [] })"
].join("\n")

const noEngine = `its default export is a Layer that provides no Engine; write\n${example}`

// --- from a file ----------------------------------------------------------------------------------------------------------

/**
 * Loads an agent module, by a path relative to the current directory: `export default` an Engine layer, and optionally
 * `export const instructions = "…"` and `export const prompt = "…"`.
 */
export const load = (file: string): Effect.Effect<Agent, AgentError> =>
  Effect.gen(function*() {
    const path = NodePath.resolve(file)
    const kind = NodeFs.statSync(path, { throwIfNoEntry: false })
    if (kind === undefined) return yield* refuse(file, "there is no such file; write the path of an agent module.")
    if (!kind.isFile() || !/\.[cm]?[jt]sx?$/.test(path)) {
      return yield* refuse(file, "it is no module; write the path of a .js or .ts file.")
    }
    return yield* agentOf(file, yield* imported(file, NodeUrl.pathToFileURL(path).href))
  })

/** Whatever an import was rejected with. */
class Rejected extends Data.TaggedError("Rejected")<{ readonly reason: unknown }> {}

const importing = (load: () => Promise<unknown>): Effect.Effect<unknown, Rejected> =>
  Effect.tryPromise({ try: load, catch: (reason) => new Rejected({ reason }) })

const imported = (file: string, url: string): Effect.Effect<unknown, AgentError> =>
  importing(() => import(url)).pipe(
    Effect.catchIf(needsTsx, () => throughTsx(file, url)),
    Effect.catchTag("Rejected", ({ reason }) => {
      const message = messageOf(reason)
      return isCommonJs(message)
        ? refuse(file, `it is read as CommonJS, which cannot import this library; ${asModule}.`)
        : broken(file, `it cannot be loaded: ${message}`)
    })
  )

const isCommonJs = (message: string): boolean =>
  message.includes("require() ES Module") || message.includes("Cannot use import statement outside a module")

/** What Node says of TypeScript that it does not read, or only in part. */
const needsTsx = ({ reason }: Rejected): boolean =>
  Predicate.hasProperty(reason, "code") &&
  (reason.code === "ERR_UNKNOWN_FILE_EXTENSION" || reason.code === "ERR_UNSUPPORTED_TYPESCRIPT_SYNTAX")

/**
 * TypeScript, for a Node that does not read it. From here on this process reads it, so that the module shares its imports
 * with the command; `tsImport` would give it copies of its own.
 */
const throughTsx = (file: string, url: string): Effect.Effect<unknown, Rejected | AgentError> =>
  Effect.tryPromise({
    try: () => import("tsx/esm/api"),
    catch: () =>
      refuse(file, "this Node reads no TypeScript; install tsx (npm install tsx), or write the agent in JavaScript.")
  }).pipe(
    Effect.tap(({ register }) => Effect.sync(() => register())),
    Effect.zipRight(importing(() => import(`${url}?tsx`)))
  )

type Exports = { readonly [name: string]: unknown }

const agentOf = (file: string, module: unknown): Effect.Effect<Agent, AgentError> =>
  Effect.gen(function*() {
    const exports = exportsOf(module)
    const layer = exports["default"]
    if (!isEngineLayer(layer)) {
      const found = layer === undefined
        ? "it has no default export"
        : `its default export is no Layer but ${kindOf(layer)}`
      return yield* refuse(file, `${found}; write\n${example}`)
    }
    return {
      name: NodePath.basename(file).replace(/\.[cm]?[jt]sx?$/, ""),
      file: NodePath.resolve(file),
      instructions: yield* textOf(file, exports, "instructions"),
      prompt: yield* textOf(file, exports, "prompt"),
      suggestions: [],
      engine: Layer.catchAllCause(layer, (cause) => Layer.effectContext(failedToBuild(file, cause)))
    }
  })

/** What a module exports; one that was made CommonJS has all of it in its default. */
const exportsOf = (module: unknown): Exports => {
  const exports: Exports = Predicate.isRecord(module) ? module : {}
  const inner = exports["default"]
  return Predicate.isRecord(inner) && !Layer.isLayer(inner) && "default" in inner ? inner : exports
}

/** Tells whether it is a Layer, also of another copy of `effect`. What it gives is seen when it is built. */
const isEngineLayer = (value: unknown): value is EngineLayer => Layer.isLayer(value)

const textOf = (file: string, exports: Exports, name: string): Effect.Effect<string | undefined, AgentError> => {
  const value = exports[name]
  return value === undefined || typeof value === "string"
    ? Effect.succeed(value)
    : refuse(file, `${name} is ${kindOf(value)}, not a text; write export const ${name} = "…"`)
}

const kindOf = (value: unknown): string => {
  if (value === null) return "null"
  if (Array.isArray(value)) return "an array"
  return typeof value === "object" ? "an object" : `a ${typeof value}`
}

const failedToBuild = (file: string, cause: Cause.Cause<unknown>): Effect.Effect<never, AgentError> => {
  if (Cause.isInterruptedOnly(cause)) return Effect.interrupt
  const text = messageOf(Cause.squash(cause))
  const [, service] = /^Service not found: (\S+)/.exec(text) ?? []
  return broken(
    file,
    service === undefined
      ? `its layer cannot be built: ${text}`
      : `the service ${service} is missing; provide it in the agent's own layer, with Layer.provide.`
  )
}

const mostLines = 5

/** What an error says, without its stack. */
const messageOf = (error: unknown): string => {
  const text = Predicate.hasProperty(error, "message") ? String(error.message) : String(error)
  const lines = text.split("\n").filter((line) => line.trim() !== "" && !/^\s+at\s/.test(line))
  return lines.length === 0 ? "no reason was given" : lines.slice(0, mostLines).join("\n")
}
