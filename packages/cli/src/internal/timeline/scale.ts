/**
 * Time as columns: which moment is where, and where to write the time.
 */
import { duration } from "../terminal/style.ts"

export interface Scale {
  readonly began: number
  readonly span: number
  readonly width: number
}

/** From one moment to another, in so many columns. */
export const make = (began: number, ended: number, width: number): Scale => ({
  began,
  span: Math.min(Math.max(1, ended - began), Number.MAX_VALUE),
  width: Math.max(1, width)
})

/** The column in which a moment is. */
export const columnOf = ({ began, span, width }: Scale, at: number): number =>
  Math.max(0, Math.min(width - 1, boundaryOf({ began, span, width }, at)))

/** Between which columns a moment is: 0 is before the first one. */
const boundaryOf = ({ began, span, width }: Scale, at: number): number => {
  const column = Math.round((at - began) / span * width)
  return Number.isNaN(column) ? 0 : Math.max(0, Math.min(width, column))
}

/** The columns of a span, at least one: what ends before another begins is before it. */
export const columnsOf = (scale: Scale, from: number, until: number): readonly [first: number, last: number] => {
  const first = columnOf(scale, from)
  return [first, Math.max(first, boundaryOf(scale, until) - 1)]
}

export interface Tick {
  readonly column: number
  readonly label: string
}

const second = 1000
const minute = 60 * second
const hour = 60 * minute
const day = 24 * hour

const each = (unit: number, ...numbers: ReadonlyArray<number>): ReadonlyArray<number> =>
  numbers.map((number) => number * unit)

const steps: ReadonlyArray<number> = [
  each(1, 1, 2, 5, 10, 20, 50, 100, 200, 500),
  each(second, 1, 2, 5, 10, 15, 30),
  each(minute, 1, 2, 5, 10, 15, 30),
  each(hour, 1, 2, 3, 6, 12),
  each(day, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)
].flat()

// A mark, the longest usual label, and a space.
const leastColumns = 8

/** Times to write along the scale, as round and as many as there is room for. */
export const ticksOf = (scale: Scale): ReadonlyArray<Tick> => {
  const step = steps.find((step) => step / scale.span * scale.width >= leastColumns)
  if (step === undefined) return [{ column: 0, label: "0" }]
  const ticks: Array<Tick> = []
  for (let at = 0; at < scale.span; at += step) {
    const column = Math.round(at / scale.span * scale.width)
    const label = labelOf(at, step)
    if (column + 1 + label.length <= scale.width) ticks.push({ column, label })
  }
  return ticks
}

const labelOf = (at: number, step: number): string => {
  if (at === 0) return "0"
  if (step < second) return at < second ? `${at} ms` : `${trimmed(at / second)} s`
  if (step < minute) return at < minute ? `${at / second} s` : clock(at)
  if (step < hour) return at < hour ? `${at / minute} min` : `${trimmed(at / hour)} h`
  return step < day && at < day ? `${at / hour} h` : `${trimmed(at / day)} d`
}

const trimmed = (number: number): string => String(Math.round(number * 100) / 100)

const clock = (at: number): string =>
  `${Math.floor(at / minute)}:${String(Math.round(at % minute / second)).padStart(2, "0")}`

/** How long something took, as exact as it is short. */
export const took = (millis: number): string => {
  if (millis < second) return `${Math.round(millis)} ms`
  return millis < day ? duration(millis) : `${Math.floor(millis / day)} d ${Math.floor(millis % day / hour)} h`
}
