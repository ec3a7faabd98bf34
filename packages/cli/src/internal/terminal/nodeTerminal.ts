/**
 * The terminal of the process.
 */
import * as Config from "effect/Config"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Queue from "effect/Queue"
import type * as Scope from "effect/Scope"
import * as Readline from "node:readline"
import { Readable } from "node:stream"
import { doNotMarkPastes, Keyboard, lineBreak, markPastes } from "./keyboard.ts"
import { showCursor } from "./picture.ts"
import { type Input, type Prompt, type Service, Terminal } from "./terminal.ts"

/** Takes over the terminal of the process, and Ctrl-C with it, until the scope closes. */
export const layer: Layer.Layer<Terminal> = Layer.scoped(
  Terminal,
  Effect.gen(function*() {
    const variable = (name: string) => Effect.orDie(Config.withDefault(Config.string(name), ""))
    const isDumb = (yield* variable("TERM")) === "dumb"
    const isLive = process.stdout.isTTY && !isDumb
    const isInteractive = process.stdin.isTTY === true
    const interrupts = yield* Queue.unbounded<void>()
    const interrupted = (): void => void interrupts.unsafeOffer(undefined)
    yield* takingSignals(interrupted)
    const lines = isLive && isInteractive ? yield* edited(interrupted) : yield* plain
    return Terminal.of({
      isLive,
      colour: isLive && (yield* variable("NO_COLOR")) === "",
      isInteractive,
      // Some terminals say 0 when they do not know.
      size: Effect.sync(() => ({ columns: process.stdout.columns || 80, rows: process.stdout.rows || 24 })),
      write: (text) => Effect.sync(() => void process.stdout.write(text)),
      interrupt: interrupts.take,
      typed: lines.typed,
      readLine: (prompt) =>
        Effect.raceFirst(
          lines.read(prompt),
          Effect.map(interrupts.take, (): Input => ({ _tag: "Interrupt", wasEmpty: lines.isEmpty() }))
        )
    })
  })
)

interface Lines {
  readonly read: (prompt: Prompt) => Effect.Effect<Input>
  readonly typed: Service["typed"]
  /** Whether nothing was in the line when it was last given up. */
  readonly isEmpty: () => boolean
}

/**
 * Ctrl-C reaches nobody else meanwhile. A terminal that is closed, and a pipe that nobody reads, end the process like
 * anyone who asks for it.
 */
const takingSignals = (interrupted: () => void): Effect.Effect<void, never, Scope.Scope> => {
  let isGone = false
  const hangUp = (): void => {
    if (!isGone) process.kill(process.pid, "SIGTERM")
    isGone = true
  }
  const others = process.listeners("SIGINT")
  return Effect.acquireRelease(
    Effect.sync(() => {
      process.removeAllListeners("SIGINT")
      process.on("SIGINT", interrupted)
      process.on("SIGHUP", hangUp)
      process.stdout.on("error", hangUp)
    }),
    () =>
      Effect.sync(() => {
        process.off("SIGINT", interrupted)
        process.off("SIGHUP", hangUp)
        for (const other of others) process.on("SIGINT", other)
      })
  )
}

// --- lines as they come: from a pipe, or where nothing can be drawn ------------------------------------------------------

const plain: Effect.Effect<Lines, never, Scope.Scope> = Effect.gen(function*() {
  const inputs = yield* Queue.unbounded<Input>()
  const reader = yield* Effect.acquireRelease(
    Effect.sync(() => Readline.createInterface({ input: process.stdin, terminal: false, crlfDelay: Infinity })),
    (reader) => Effect.sync(() => reader.close())
  )
  let hasEnded = false
  reader.on("line", (text) => void inputs.unsafeOffer({ _tag: "Line", text }))
  reader.on("close", () => {
    hasEnded = true
    inputs.unsafeOffer({ _tag: "End" })
  })
  const isPrompted = process.stdout.isTTY && process.stdin.isTTY
  return {
    read: ({ text }) =>
      Effect.suspend(() => {
        if (isPrompted) process.stdout.write(text)
        // The end is never over.
        const next = Effect.tap(
          inputs.take,
          (input) => input._tag === "End" && hasEnded ? inputs.offer(input) : Effect.void
        )
        return isPrompted ? Effect.onInterrupt(next, () => Effect.sync(() => process.stdout.write("\n"))) : next
      }),
    typed: Effect.succeed(""),
    isEmpty: () => true
  }
})

// --- lines that a person edits -------------------------------------------------------------------------------------------

const edited = (interrupted: () => void): Effect.Effect<Lines, never, Scope.Scope> =>
  Effect.gen(function*() {
    let current: Editor | undefined
    let history: Array<string> = []
    const keyboard = new Keyboard({
      interrupt: interrupted,
      keys: (text) => {
        // Of several characters at once Node puts all but the last at the end of the line, wherever the cursor is.
        for (const character of text) current?.keys.emit("data", character)
      },
      suspend: () => suspendProcess(() => current?.line.prompt(true))
    })
    const hear = (text: string): void => keyboard.hear(text)
    const hangUp = (): void => void current?.line.close()
    yield* Effect.acquireRelease(
      Effect.sync(() => {
        process.stdin.setEncoding("utf8")
        process.stdin.on("data", hear)
        process.stdin.on("end", hangUp)
        process.on("exit", restore)
        prepare()
      }),
      () =>
        Effect.sync(() => {
          process.stdin.off("data", hear)
          process.stdin.off("end", hangUp)
          process.stdin.pause()
          process.off("exit", restore)
          restore()
        })
    )

    const read = (prompt: Prompt): Effect.Effect<Input> =>
      Effect.async<Input>((resume) => {
        const isChat = prompt.kind === "chat"
        if (isChat && history.length === 0 && prompt.remembered !== undefined) history = [prompt.remembered]
        const editor = makeEditor(prompt, isChat ? history : undefined)
        const { line } = editor
        let isOver = false
        const over = (input: Input): void => {
          if (isOver) return
          isOver = true
          keyboard.isAsked = false
          current = undefined
          line.close()
          resume(Effect.succeed(input))
        }
        line.on("history", (lines: Array<string>) => {
          if (isChat) history = lines.slice()
        })
        line.on("line", (text) => over({ _tag: "Line", text: text.replaceAll(lineBreak, "\n") }))
        line.on("close", () => {
          if (!isOver) process.stdout.write("\n")
          over({ _tag: "End" })
        })
        current = editor
        keyboard.isAsked = true
        line.prompt()
        const draft = [prompt.draft ?? "", isChat ? keyboard.takeTyped() : ""].filter((text) => text !== "").join(" ")
        if (draft !== "") line.write(draft.replaceAll("\n", lineBreak))
        return Effect.sync(() => {
          // What is left of the line stays to be seen.
          line.write(null, { ctrl: true, name: "e" })
          process.stdout.write("\n")
          over({ _tag: "Interrupt", wasEmpty: line.line === "" })
        })
      })

    return {
      read,
      typed: Effect.sync(() => keyboard.typed.replaceAll(lineBreak, " ")),
      isEmpty: () => (current?.line.line ?? "") === ""
    }
  })

/** Node's line editor, and the stream it hears keys from. */
interface Editor {
  readonly line: Readline.Interface
  readonly keys: Readable
}

const makeEditor = ({ complete, text }: Prompt, history: ReadonlyArray<string> | undefined): Editor => {
  // Not the input itself: keys are heard also while there is no editor.
  const keys = new Readable({ read: () => {} })
  const line = Readline.createInterface({
    input: keys,
    output: process.stdout,
    terminal: true,
    prompt: text,
    history: [...history ?? []],
    historySize: history === undefined ? 0 : 500,
    removeHistoryDuplicates: true,
    escapeCodeTimeout: 50,
    completer: (line: string) => [complete?.(line) ?? [], line]
  })
  return { line, keys }
}

const prepare = (): void => {
  process.stdin.setRawMode(true)
  process.stdout.write(markPastes)
}

const restore = (): void => {
  process.stdin.setRawMode(false)
  process.stdout.write(doNotMarkPastes + showCursor)
}

/** What Ctrl-Z does; `proceed` is called when the process goes on. */
const suspendProcess = (proceed: () => void): void => {
  restore()
  process.once("SIGCONT", () => {
    prepare()
    proceed()
  })
  process.kill(process.pid, "SIGTSTP")
}
