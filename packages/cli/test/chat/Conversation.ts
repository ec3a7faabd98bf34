/** A chat in memory: a screen, a keyboard, a scripted model, and time that only passes when it is told to. */
import { type Engine, Fake, SessionLease, SessionRunner, SessionStore, type Tool, ToolJournal } from "@allm/core"
import { Effect, Fiber, Layer, Queue, Ref, TestClock } from "effect"
import * as Chat from "../../src/internal/chat/chat.ts"
import { withNotes } from "../../src/internal/chat/notes.ts"
import { type Input, type Prompt, Terminal } from "../../src/internal/terminal/terminal.ts"
import { Traces } from "../../src/internal/trace.ts"
import { Screen } from "./Screen.ts"

export interface Options {
  readonly columns?: number
  readonly rows?: number
  /** Where nothing can be drawn. */
  readonly isPlain?: boolean
  /** What is piped in; without it a person types. */
  readonly piped?: ReadonlyArray<string>
  /** What is done before the chat begins. */
  readonly prepare?: Effect.Effect<void, unknown, SessionStore.SessionStore>
  readonly message?: string
  readonly sessionId?: string
  readonly prompt?: string
  readonly suggestions?: ReadonlyArray<string>
}

export interface Talk {
  readonly screen: Screen
  readonly enter: (text: string) => Effect.Effect<void>
  readonly interrupt: Effect.Effect<void>
  readonly end: Effect.Effect<void>
  /** What is asked for now, with the prompt that asks. */
  readonly asked: Effect.Effect<Prompt | undefined>
  readonly writes: ReadonlyArray<string>
  /** The exit code, once the chat is over. */
  readonly code: Effect.Effect<number, unknown>
  readonly isOver: Effect.Effect<boolean>
  type: (text: string) => void
}

/** Lets time pass, a frame at a time. */
export const pass = (millis: number): Effect.Effect<void> =>
  Effect.repeatN(TestClock.adjust("40 millis"), Math.ceil(millis / 40) - 1)

const memory = Layer.provideMerge(
  SessionRunner.layer(),
  Layer.mergeAll(SessionStore.layerMemory, SessionLease.layerMemory, ToolJournal.layerMemory)
)

const untraced = Layer.succeed(
  Traces,
  Traces.of({
    record: (_sessionId, _turn, events) => events,
    read: () => Effect.succeed({ entries: [], unknown: 0, torn: 0 }),
    delete: () => Effect.void
  })
)

type Stored = SessionStore.SessionStore | SessionRunner.SessionRunner

/** Begins a chat with a scripted agent, and hands over screen and keyboard. */
export const talking = <A, E>(
  model: Fake.Options & Engine.Options<Tool.Tool<string, never, unknown, unknown, never>>,
  options: Options,
  use: (talk: Talk) => Effect.Effect<A, E, Stored | Fake.Fake>
): Effect.Effect<A, E> =>
  Effect.gen(function*() {
    const screen = new Screen(options.columns ?? 72, options.rows ?? 40)
    const inputs = yield* Queue.unbounded<Input>()
    const interrupts = yield* Queue.unbounded<void>()
    const asked = yield* Ref.make<Prompt | undefined>(undefined)
    const writes: Array<string> = []
    const isLive = options.isPlain !== true
    const isInteractive = options.piped === undefined
    let typed = ""
    const terminal = Terminal.of({
      isLive,
      colour: false,
      isInteractive,
      size: Effect.sync(() => ({ columns: screen.columns, rows: screen.rows })),
      write: (text) =>
        Effect.sync(() => {
          writes.push(text)
          screen.write(text)
        }),
      interrupt: interrupts.take,
      typed: Effect.sync(() => typed),
      readLine: (prompt) =>
        Effect.raceFirst(
          inputs.take,
          Effect.as(interrupts.take, { _tag: "Interrupt", wasEmpty: true } satisfies Input as Input)
        ).pipe(
          Effect.tap((input) => input._tag === "End" ? inputs.offer(input) : Effect.void),
          Effect.tap((input) =>
            Effect.sync(() => {
              if (isLive && isInteractive) screen.write(`${prompt.text}${input._tag === "Line" ? input.text : ""}\n`)
            })
          ),
          Effect.ensuring(Ref.set(asked, undefined)),
          (reading) => Effect.zipRight(Ref.set(asked, prompt), reading)
        )
    })
    yield* Effect.forEach(options.piped ?? [], (text) => inputs.offer({ _tag: "Line", text }))
    if (!isInteractive) yield* inputs.offer({ _tag: "End" })

    const engine = Fake.engine(model)
    return yield* Effect.gen(function*() {
      const chat = withNotes((notes) =>
        Chat.run({
          agent: {
            file: undefined,
            name: "scripted",
            instructions: "Be brief.",
            prompt: options.prompt,
            suggestions: options.suggestions ?? []
          },
          model: { label: "demo", isDemo: options.prompt !== undefined, origin: "none" },
          label: options.prompt === undefined ? "fake" : "demo",
          comeBack: (id) => `allm chat --session ${id}`,
          sessionId: options.sessionId,
          message: options.message
        }, notes)
      )
      yield* Effect.orDie(options.prepare ?? Effect.void)
      const fiber = yield* Effect.fork(chat)
      yield* pass(20)
      const input = (input: Input) => Effect.zipRight(inputs.offer(input), pass(40))
      const result = yield* use({
        screen,
        writes,
        enter: (text) => input({ _tag: "Line", text }),
        interrupt: Effect.zipRight(interrupts.offer(undefined), pass(40)),
        end: input({ _tag: "End" }),
        asked: Ref.get(asked),
        code: Effect.zipRight(pass(40), Fiber.join(fiber)),
        isOver: Effect.map(Fiber.poll(fiber), ({ _tag }) => _tag === "Some"),
        type: (text) => {
          typed = text
        }
      })
      yield* Fiber.interruptFork(fiber)
      return result
    }).pipe(Effect.provide(Layer.mergeAll(memory, untraced, engine, Layer.succeed(Terminal, terminal))))
  })
