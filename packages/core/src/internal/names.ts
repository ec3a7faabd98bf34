/**
 * Names of ids where not every text can be one: of a file, a directory, a key.
 */
import { digestOf } from "./journalDigest.ts"

const bytes = new TextEncoder()

const hex = (number: number, digits: number): string => number.toString(16).padStart(digits, "0")

const escaped = (character: string): string => {
  const point = character.codePointAt(0)!
  // Half of a character has no bytes of its own.
  return point >= 0xd800 && point <= 0xdfff
    ? `%u${hex(point, 4)}`
    : Array.from(bytes.encode(character), (byte) => `%${hex(byte, 2)}`).join("")
}

// Also on systems where upper and lower case are the same name, or a dot has a meaning.
const spelled = (id: string): string => id === "" ? "%" : id.replaceAll(/[^a-z0-9_-]/gu, escaped)

/** For files: most systems end at 255 characters, and some of those belong to what is added to the name. */
export const nameOf = (id: string): string => {
  const name = spelled(id)
  return name.length <= 180 ? name : `${name.slice(0, 100)}%-${digestOf(id, null)}`
}

/** For keys with two names in them: stores that keep their keys as files escape them once more. */
export const shortNameOf = (id: string): string => {
  const name = spelled(id)
  return encodeURIComponent(name).length <= 115 ? name : `%-${digestOf(id, null)}`
}

/** The id of a name, unless the id was too long to be in it. */
export const idOfName = (name: string): string | undefined => {
  try {
    const id = decodeURIComponent(name)
    return nameOf(id) === name ? id : undefined
  } catch {
    return undefined
  }
}
