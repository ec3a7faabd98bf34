/**
 * What a call asks for, in 64 characters: equal for the same tool and arguments, whatever the order of their keys.
 */
import { isPlainObject, toJsonOrStandIn } from "./json.ts"

export const digestOf = (toolName: string, args: unknown): string =>
  sha256(canonical([toolName, toJsonOrStandIn(args) ?? null]))

/** JSON with its keys in order. */
const canonical = (json: unknown): string => {
  if (Array.isArray(json)) return `[${json.map((member) => canonical(member ?? null)).join(",")}]`
  if (!isPlainObject(json)) return JSON.stringify(json)
  const members = Object.keys(json).filter((key) => json[key] !== undefined).sort()
  return `{${members.map((key) => `${JSON.stringify(key)}:${canonical(json[key])}`).join(",")}}`
}

const isPrime = (n: number): boolean => {
  for (let divisor = 2; divisor * divisor <= n; divisor++) if (n % divisor === 0) return false
  return true
}

const fraction = (n: number): number => Math.trunc((n - Math.trunc(n)) * 2 ** 32) | 0

const primes = Array.from({ length: 310 }, (_, index) => index + 2).filter(isPrime)
const roundConstants = Int32Array.from(primes.slice(0, 64), (prime) => fraction(Math.cbrt(prime)))
const initialState = primes.slice(0, 8).map((prime) => fraction(Math.sqrt(prime)))

const rotate = (word: number, by: number): number => (word >>> by) | (word << (32 - by))

// The platform's own is asynchronous, and only some have it.
const sha256 = (text: string): string => {
  const bytes = new TextEncoder().encode(text)
  const blocks = new DataView(new ArrayBuffer(((bytes.length + 8) >> 6) * 64 + 64))
  for (let i = 0; i < bytes.length; i++) blocks.setUint8(i, bytes[i]!)
  blocks.setUint8(bytes.length, 0x80)
  blocks.setBigUint64(blocks.byteLength - 8, BigInt(bytes.length) * 8n)
  const state = Int32Array.from(initialState)
  const schedule = new Int32Array(64)
  for (let offset = 0; offset < blocks.byteLength; offset += 64) {
    for (let i = 0; i < 64; i++) schedule[i] = i < 16 ? blocks.getInt32(offset + i * 4) : expanded(schedule, i)
    compress(state, schedule)
  }
  return Array.from(state, (word) => (word >>> 0).toString(16).padStart(8, "0")).join("")
}

const expanded = (schedule: Int32Array, i: number): number => {
  const early = schedule[i - 15]!
  const late = schedule[i - 2]!
  const s0 = rotate(early, 7) ^ rotate(early, 18) ^ (early >>> 3)
  const s1 = rotate(late, 17) ^ rotate(late, 19) ^ (late >>> 10)
  return (schedule[i - 16]! + s0 + schedule[i - 7]! + s1) | 0
}

const compress = (state: Int32Array, schedule: Int32Array): void => {
  let [a, b, c, d, e, f, g, h] = state as unknown as [
    number,
    number,
    number,
    number,
    number,
    number,
    number,
    number
  ]
  for (let i = 0; i < 64; i++) {
    const s1 = rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)
    const t1 = (h + s1 + ((e & f) ^ (~e & g)) + roundConstants[i]! + schedule[i]!) | 0
    const s0 = rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)
    const t2 = (s0 + ((a & b) ^ (a & c) ^ (b & c))) | 0
    h = g
    g = f
    f = e
    e = (d + t1) | 0
    d = c
    c = b
    b = a
    a = (t1 + t2) | 0
  }
  const words = [a, b, c, d, e, f, g, h]
  for (let i = 0; i < 8; i++) state[i] = (state[i]! + words[i]!) | 0
}
