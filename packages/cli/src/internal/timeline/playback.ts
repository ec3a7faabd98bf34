/**
 * A timeline as it was while things happened: the picture at every moment, and how the moments follow each other.
 */
import type { Answer, Call, Timeline, Turn } from "../timeline.ts"

/** What there was of a timeline at a moment: what had not ended runs up to then. */
export const upTo = (timeline: Timeline, at: number): Timeline => {
  const turns = timeline.turns.filter(({ began }) => began <= at).map((turn) => turnUpTo(turn, at))
  return {
    ...timeline,
    turns,
    waits: timeline.waits.slice(0, turns.length).map((wait) => {
      if (wait.from > at) return { ...wait, until: undefined, calls: [] }
      return { ...wait, until: wait.until === undefined || wait.until > at ? undefined : wait.until }
    })
  }
}

const turnUpTo = (turn: Turn, at: number): Turn =>
  turn.ended <= at ? turn : {
    ...turn,
    ended: at,
    outcome: "completed",
    reason: undefined,
    message: undefined,
    answers: turn.answers.filter(({ began }) => began <= at).map((answer) => answerUpTo(answer, at)),
    calls: turn.calls.filter((call) => (call.asked ?? call.began ?? call.ended) <= at).map((call) =>
      callUpTo(call, at)
    ),
    lines: turn.lines.filter((line) => line.at <= at)
  }

const answerUpTo = (answer: Answer, at: number): Answer =>
  answer.ended <= at ? answer : {
    ...answer,
    ended: at,
    outcome: "running",
    spoke: answer.spoke !== undefined && answer.spoke > at ? undefined : answer.spoke,
    retries: answer.retries.filter((moment) => moment <= at),
    tokens: undefined,
    calls: 0,
    message: undefined
  }

const callUpTo = (call: Call, at: number): Call =>
  call.ended <= at ? call : {
    ...call,
    began: call.began !== undefined && call.began > at ? undefined : call.began,
    ended: at,
    outcome: "running",
    isReplayed: false,
    retries: call.retries.filter((moment) => moment <= at),
    progress: call.progress.filter((moment) => moment.at <= at),
    message: undefined,
    limitMillis: undefined
  }

// Nobody wants to wait for a night to pass.
const longestPause = 1000

interface Stretch {
  readonly from: number
  readonly millis: number
}

/** The stretches of a timeline that are worth seeing, and one short pause for every long one between them. */
const stretchesOf = ({ turns }: Timeline): ReadonlyArray<Stretch> =>
  turns.flatMap(({ began, ended }, index) => {
    const next = turns[index + 1]
    const pause = next === undefined ? 0 : Math.max(0, Math.min(longestPause, next.began - ended))
    return [
      { from: began, millis: (next === undefined ? ended : Math.min(ended, next.began)) - began },
      { from: ended, millis: pause }
    ]
  })

/** How long it takes to play a timeline. */
export const lengthOf = (timeline: Timeline): number =>
  stretchesOf(timeline).reduce((sum, { millis }) => sum + millis, 0)

/** The moment that is shown when a timeline has played for so long. */
export const momentAt = (timeline: Timeline, played: number): number => {
  let left = played
  let last = 0
  for (const { from, millis } of stretchesOf(timeline)) {
    if (left < millis) return from + left
    left -= millis
    last = from + millis
  }
  return last
}
