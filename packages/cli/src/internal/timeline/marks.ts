/**
 * What the picture of a timeline is made of, and what each mark means.
 */
import type { Style } from "../terminal/style.ts"
import type { Answer, Call, Outcome } from "../timeline.ts"

/** One column of a bar. */
export interface Mark {
  readonly glyph: string
  readonly style: Style | undefined
}

/** A mark and the word for it. */
export interface Sign extends Mark {
  readonly word: string
}

export const thinking: Sign = { glyph: "░", style: "cyan", word: "waiting for the model" }
export const speaking: Sign = { glyph: "▓", style: "cyan", word: "model answers" }
export const queued: Sign = { glyph: "·", style: "dim", word: "waiting for its turn" }
export const running: Sign = { glyph: "█", style: undefined, word: "tool runs" }
export const again: Sign = { glyph: "↻", style: "yellow", word: "run or asked again" }
export const progress: Sign = { glyph: "•", style: undefined, word: "progress" }
export const replayed: Sign = { glyph: "≡", style: "blue", word: "answered from the journal" }

export const signs: { readonly [K in Outcome]: Sign } = {
  done: { glyph: "✓", style: "green", word: "done" },
  replaced: { glyph: "≈", style: "green", word: "replaced" },
  failed: { glyph: "✗", style: "red", word: "failed" },
  crashed: { glyph: "!", style: "red", word: "crashed" },
  invalid: { glyph: "≠", style: "red", word: "not valid" },
  timedOut: { glyph: "◷", style: "magenta", word: "timed out" },
  abandoned: { glyph: "◌", style: "magenta", word: "abandoned" },
  halted: { glyph: "■", style: "yellow", word: "halted the run" },
  asked: { glyph: "?", style: "yellow", word: "asked" },
  approval: { glyph: "◆", style: "yellow", word: "needs approval" },
  manual: { glyph: "◇", style: "yellow", word: "left to the caller" },
  denied: { glyph: "⊘", style: "red", word: "denied" },
  skipped: { glyph: "○", style: "dim", word: "not started" },
  stopped: { glyph: "□", style: "blue", word: "stopped by a halt" },
  interrupted: { glyph: "╳", style: "blue", word: "interrupted" },
  unknown: { glyph: "¿", style: "magenta", word: "outcome unknown" },
  lost: { glyph: "†", style: "magenta", word: "no end noted" },
  running: { glyph: "▸", style: "cyan", word: "running" }
}

/** All of them, in the order of the legend. */
const all: ReadonlyArray<Sign> = [
  thinking,
  speaking,
  queued,
  running,
  progress,
  again,
  replayed,
  ...Object.values(signs)
]

/** In the order of the legend. */
export const outcomes: ReadonlyArray<Outcome> = Object.keys(signs) as ReadonlyArray<Outcome>

/** Those that occur among these marks. */
export const legendOf = (glyphs: ReadonlySet<string>): ReadonlyArray<Sign> =>
  all.filter(({ glyph }) => glyphs.has(glyph))

export const signOf = (call: Call): Sign => call.isReplayed && call.outcome === "done" ? replayed : signs[call.outcome]

export const signOfAnswer = (answer: Answer): Sign => signs[answer.outcome]
