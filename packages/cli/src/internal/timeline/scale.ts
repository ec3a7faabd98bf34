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

/** Times to write along the scale, as round and as many as there is room for. */
export const ticksOf = (scale: Scale): ReadonlyArray<Tick> =>
  steps.map((step) => ticksBy(scale, step)).find((ticks) => isReadable(ticks, scale)) ?? [{ column: 0, label: "0" }]

const ticksBy = (scale: Scale, step: number): ReadonlyArray<Tick> => {
  const { span, width } = scale
  // So many that there is certainly no room for them.
  if (span / step > width) return []
  return Array.from({ length: Math.ceil(span / step) }, (_, index) => ({
    column: Math.round(index * step / span * width),
    label: labelOf(index * step, step)
  })).filter(({ column, label }) => column + 1 + label.length <= width)
}

/** Whether there is a space behind every label, and in a wide window more than that. */
const isReadable = (ticks: ReadonlyArray<Tick>, { width }: Scale): boolean =>
  ticks.length > 0 && ticks.every(({ column, label }, index) => {
    const next = ticks[index + 1]
    return next === undefined || next.column - column >= Math.max(label.length + 2, Math.min(8, width / 4))
  })

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
