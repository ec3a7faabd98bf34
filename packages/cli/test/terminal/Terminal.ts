/** A command in a real pseudo-terminal, whose output a real terminal interprets: what is on the screen is what a person sees. */
import { spawn } from "@lydell/node-pty"
import type * as Xterm from "@xterm/headless"
import { createRequire } from "node:module"
import { constants } from "node:os"
import stringWidth from "string-width"

// The package has no exports map, and its module entry does not exist.
const xterm: typeof Xterm = createRequire(import.meta.url)("@xterm/headless")

/** How a character looks: colours are a number of the palette or a hex triple; without one they are the terminal's own. */
export interface Cell {
  readonly text: string
  /** 2 for a wide character, and 0 for the place that it covers. */
  readonly width: number
  readonly foreground: number | string | undefined
  readonly background: number | string | undefined
  readonly bold: boolean
  readonly dim: boolean
  readonly underline: boolean
  readonly inverse: boolean
}

export interface Exit {
  readonly code: number
  readonly signal: string | undefined
}

export interface Options {
  readonly columns?: number | undefined
  readonly rows?: number | undefined
  readonly cwd?: string | undefined
  readonly env?: Record<string, string> | undefined
}

/** What is waited for: a text or a pattern on the screen, or anything else about the terminal. */
export type Condition = string | RegExp | ((terminal: Terminal) => boolean)

export interface Terminal extends AsyncDisposable {
  readonly pid: number
  /** The rows that are in view, without blanks at their ends and without empty rows at the end. */
  readonly screen: () => string
  /** The rows that have scrolled out of view, and the screen. */
  readonly history: () => string
  /** The rows that the terminal had to break because they were too long for it. */
  readonly broken: () => ReadonlyArray<string>
  /** All screens there have been, as far as they differ from the one before. */
  readonly frames: () => ReadonlyArray<string>
  readonly cells: () => ReadonlyArray<ReadonlyArray<Cell>>
  readonly cursor: () => { readonly row: number; readonly column: number; readonly visible: boolean }
  /** Every byte that was written. */
  readonly written: () => string
  /** Waits until it is so, and gives the screen; a rejection shows the screen as it was instead. */
  readonly until: (condition: Condition, timeout?: number) => Promise<string>
  readonly type: (text: string) => void
  readonly key: (name: Key) => void
  readonly resize: (columns: number, rows: number) => void
  readonly kill: (signal: NodeJS.Signals) => void
  readonly exit: Promise<Exit>
}

const keys = {
  enter: "\r",
  tab: "\t",
  escape: "\x1b",
  backspace: "\x7f",
  delete: "\x1b[3~",
  up: "\x1b[A",
  down: "\x1b[B",
  right: "\x1b[C",
  left: "\x1b[D",
  home: "\x1b[H",
  end: "\x1b[F",
  "ctrl-a": "\x01",
  "ctrl-c": "\x03",
  "ctrl-d": "\x04",
  "ctrl-e": "\x05",
  "ctrl-k": "\x0b",
  "ctrl-l": "\x0c",
  "ctrl-u": "\x15",
  "ctrl-w": "\x17",
  "ctrl-z": "\x1a"
}

export type Key = keyof typeof keys

const defaultTimeout = 45_000

/** Starts a command in a terminal of its own; leaving the scope ends it and everything it started. */
export const open = (
  [command, ...args]: readonly [string, ...Array<string>],
  { columns = 80, cwd, env, rows = 24 }: Options = {}
): Terminal => {
  const emulator: Xterm.Terminal = new xterm.Terminal({
    cols: columns,
    rows,
    scrollback: 10_000,
    allowProposedApi: true
  })
  emulator.unicode.register(widths)
  emulator.unicode.activeVersion = widths.version
  const process = spawn(command, args, {
    // It beats what the environment says.
    name: env?.["TERM"] ?? "xterm-256color",
    cols: columns,
    rows,
    ...(cwd === undefined ? {} : { cwd }),
    ...(env === undefined ? {} : { env })
  })
  const frames: Array<string> = []
  const watchers = new Set<() => void>()
  let written = ""
  let visible = true
  let exited: Exit | undefined

  for (const final of ["h", "l"]) {
    emulator.parser.registerCsiHandler({ prefix: "?", final }, (params) => {
      if (params.includes(25)) visible = final === "h"
      return false
    })
  }
  const drawn = () => {
    // Whoever asks for synchronized output is not seen half-way.
    if (emulator.modes.synchronizedOutputMode) return
    const screen = terminal.screen()
    if (frames.at(-1) !== screen) frames.push(screen)
    for (const watcher of watchers) watcher()
  }
  process.onData((data) => {
    written += data
    emulator.write(data, drawn)
  })
  // What the command asks of the terminal, such as the place of the cursor.
  emulator.onData((answer) => process.write(answer))

  const exit = new Promise<Exit>((resolve) =>
    process.onExit(({ exitCode, signal }) => {
      // What was written last is interpreted first.
      emulator.write("", () => {
        exited = { code: exitCode, signal: signalName(signal) }
        resolve(exited)
        for (const watcher of watchers) watcher()
      })
    })
  )

  const rowsFrom = (first: number) => {
    const buffer = emulator.buffer.active
    const lines: Array<Xterm.IBufferLine> = []
    for (let row = first; row < buffer.length; row++) {
      const line = buffer.getLine(row)
      if (line) lines.push(line)
    }
    return lines
  }
  const text = (first: number) => rowsFrom(first).map((line) => line.translateToString(true)).join("\n").trimEnd()
  const kill = (signal: NodeJS.Signals) => {
    try {
      // The command leads a group of its own, as a pseudo-terminal has it.
      globalThis.process.kill(-process.pid, signal)
    } catch {
      // It has ended meanwhile.
    }
  }

  const terminal: Terminal = {
    pid: process.pid,
    screen: () => text(emulator.buffer.active.baseY),
    history: () => text(0),
    broken: () => rowsFrom(0).filter((line) => line.isWrapped).map((line) => line.translateToString(true)),
    frames: () => frames,
    cells: () => rowsFrom(emulator.buffer.active.baseY).map((line) => cells(line, emulator.cols)),
    cursor: () => ({ row: emulator.buffer.active.cursorY, column: emulator.buffer.active.cursorX, visible }),
    written: () => written,
    until: (condition, timeout = defaultTimeout) =>
      new Promise((resolve, reject) => {
        const done = () => {
          watchers.delete(watch)
          clearTimeout(timer)
        }
        const give = (why: string) => {
          done()
          reject(new Error(`${describe(condition)}: ${why}\n${frame(terminal.screen())}`))
        }
        const watch = () => {
          if (holds(condition, terminal)) {
            done()
            resolve(terminal.screen())
          } else if (exited) {
            give(`not before it ended with ${exited.signal ?? exited.code}`)
          }
        }
        const timer = setTimeout(() => give(`not within ${timeout} ms`), timeout)
        watchers.add(watch)
        watch()
      }),
    type: (text) => process.write(text),
    key: (name) => process.write(keys[name]),
    resize: (columns, rows) => {
      emulator.resize(columns, rows)
      process.resize(columns, rows)
    },
    kill,
    exit,
    [Symbol.asyncDispose]: async () => {
      if (!exited) kill("SIGKILL")
      await exit
      emulator.dispose()
    }
  }
  return terminal
}

const holds = (condition: Condition, terminal: Terminal) =>
  typeof condition === "function" ? condition(terminal) : includes(terminal.screen(), condition)

/** Whether a text has another or a pattern in it. */
export const includes = (text: string, part: string | RegExp): boolean =>
  typeof part === "string" ? text.includes(part) : part.test(text)

const describe = (condition: Condition) => typeof condition === "string" ? JSON.stringify(condition) : String(condition)

const frame = (screen: string) => screen.split("\n").map((row) => `  │${row}`).join("\n")

/** How an exit by a signal is named; a terminal knows its number. */
const signalName = (signal: number | undefined) =>
  Object.entries(constants.signals).find(([, number]) => number === signal)?.[0]

const cells = (line: Xterm.IBufferLine, columns: number): ReadonlyArray<Cell> => {
  const row: Array<Cell> = []
  for (let column = 0; column < columns; column++) {
    const cell = line.getCell(column)
    if (!cell) continue
    row.push({
      text: cell.getChars(),
      width: cell.getWidth(),
      foreground: colour(cell.getFgColor(), cell.isFgPalette(), cell.isFgRGB()),
      background: colour(cell.getBgColor(), cell.isBgPalette(), cell.isBgRGB()),
      bold: cell.isBold() !== 0,
      dim: cell.isDim() !== 0,
      underline: cell.isUnderline() !== 0,
      inverse: cell.isInverse() !== 0
    })
  }
  return row
}

const colour = (value: number, palette: boolean, triple: boolean) =>
  palette ? value : triple ? `#${value.toString(16).padStart(6, "0")}` : undefined

// The emulator's own table is of 2010, before there were emoji; terminals of today draw them wide.
const widths: Xterm.IUnicodeVersionProvider = {
  version: "today",
  wcwidth: (codepoint) => {
    const width = stringWidth(String.fromCodePoint(codepoint))
    return width === 0 ? 0 : width === 1 ? 1 : 2
  },
  // Packs the state, the width and whether the character joins the one before it into one number.
  charProperties: (codepoint, before) => {
    const width = widths.wcwidth(codepoint)
    const widthBefore = (before >> 1) & 3
    return width === 0 && widthBefore > 0 ? (widthBefore << 1) | 1 : width << 1
  }
}
