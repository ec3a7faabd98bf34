/**
 * Stores that outlive processes, and processes that share them: runners whose every step can be seen, held up and broken.
 */
import { Fake, Message, type Session, SessionLease, SessionRunner, SessionStore, Tool, ToolJournal } from "@allm/core"
import { Context, Effect, Layer } from "effect"

/** What a process does to the world outside, such as `store.save` or `journal.prepare c0`. */
export type Around = <A, E>(step: string, work: Effect.Effect<A, E>) => Effect.Effect<A, E>

type Method = (...args: ReadonlyArray<unknown>) => Effect.Effect<unknown, unknown>

const labelOf = (name: string, method: string, args: ReadonlyArray<unknown>): string => {
  const [first] = args as ReadonlyArray<{ readonly toolCallId?: string } | string>
  const call = typeof first === "object" && first.toolCallId !== undefined ? ` ${first.toolCallId}` : ""
  return `${name}.${method}${call}`
}

/** The same service, each call of which goes through `around`. */
const through = <S extends object>(name: string, service: S, around: Around): S =>
  Object.fromEntries(
    Object.entries(service as Record<string, Method>).map(([method, run]): readonly [string, Method] => [
      method,
      (...args) => around(labelOf(name, method, args), Effect.suspend(() => run(...args)))
    ])
  ) as unknown as S

const journalIn = (texts: Map<string, string>) => {
  const locate = ({ sessionId, toolCallId }: ToolJournal.Key) => `${sessionId}/${toolCallId}`
  return ToolJournal.fromCells({
    locate,
    read: (key) => Effect.sync(() => texts.get(locate(key))),
    create: (key, text) =>
      Effect.sync(() => {
        const known = texts.get(locate(key))
        if (known === undefined) texts.set(locate(key), text)
        return known
      }),
    replace: (key, text) => Effect.sync(() => void texts.set(locate(key), text)),
    list: (sessionId) =>
      Effect.sync(() =>
        Array.from(texts, ([location, text]) => ({ location, text })).filter(({ location }) =>
          location.startsWith(`${sessionId}/`)
        )
      ),
    remove: (sessionId, toolCallIds) =>
      Effect.sync(() => {
        for (const toolCallId of toolCallIds) texts.delete(locate({ sessionId, toolCallId }))
      })
  })
}

export interface ProcessOptions extends SessionRunner.RunnerOptions {
  readonly around?: Around
}

/** An entry of the journal as it is kept. */
interface Entry {
  readonly sessionId: string
  readonly toolCallId: string
  readonly digest: string
  readonly outcome?: unknown
}

export class World {
  /** The texts of the journal. */
  readonly texts = new Map<string, string>()
  private readonly context: Context.Context<SessionStore.SessionStore | SessionLease.SessionLease>
  readonly journal = journalIn(this.texts)

  constructor(context: Context.Context<SessionStore.SessionStore | SessionLease.SessionLease>) {
    this.context = context
  }

  get entries(): ReadonlyArray<Entry> {
    return Array.from(this.texts.values(), (text) => JSON.parse(text) as Entry)
  }

  get store(): SessionStore.Service {
    return Context.get(this.context, SessionStore.SessionStore)
  }

  get leases(): SessionLease.Service {
    return Context.get(this.context, SessionLease.SessionLease)
  }

  /** A runner of its own on the same stores. */
  process({ around = (_step, work) => work, ...options }: ProcessOptions = {}) {
    const stores = Context.make(SessionStore.SessionStore, through("store", this.store, around)).pipe(
      Context.add(SessionLease.SessionLease, through("lease", this.leases, around)),
      Context.add(ToolJournal.ToolJournal, through("journal", this.journal, around))
    )
    return Layer.provide(SessionRunner.layer(options), Layer.succeedContext(stores))
  }
}

export const stores = Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)

export const world: Effect.Effect<World> = Effect.scoped(
  Effect.map(
    Layer.build(Layer.fresh(Layer.merge(SessionStore.layerMemory, SessionLease.layerMemory))),
    (context) => new World(context)
  )
)

export const call = (id: string, name: string, args: unknown = {}) => Fake.toolCall({ id, name, arguments: args })
export const asks = (...calls: ReadonlyArray<Fake.Entry>): Fake.Script => [...calls, Fake.finish("tool_calls")]
export const says = (text: string): Fake.Script => [Fake.text(text), Fake.finish("stop")]

/** A tool that counts what it does to the world. */
export const counting = (name: string, traces: Array<string>, options: { readonly replay?: Tool.Replay } = {}) =>
  Tool.make(name, {
    description: "Leaves a trace",
    ...options,
    handler: (_params, { toolCall }) => {
      traces.push(`${name} ${toolCall.id}`)
      return `${name} done`
    }
  })

export const said = ({ thread }: Session.Session) =>
  thread.messages.map((message) => [message.role, Message.toText(message)])

/** What a provider refuses: calls without results, results without calls. */
export const historyProblems = ({ thread: { messages } }: Session.Session): ReadonlyArray<string> => {
  const problems: Array<string> = []
  let waiting: Array<string> = []
  for (const message of messages) {
    if (message.role === "tool") {
      if (!waiting.includes(message.toolCallId)) problems.push(`a result of ${message.toolCallId} without a call`)
      waiting = waiting.filter((id) => id !== message.toolCallId)
      continue
    }
    if (waiting.length > 0) problems.push(`${waiting.join(", ")} without a result`)
    waiting = message.role === "assistant" ? message.toolCalls.map(({ id }) => id) : []
  }
  return waiting.length > 0 ? [...problems, `${waiting.join(", ")} without a result`] : problems
}
