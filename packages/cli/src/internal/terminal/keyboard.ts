/**
 * What a person types, taken apart before anything else sees it: Ctrl-C, pasted text, what belongs to the line that is
 * being asked for, and what is typed while nobody asks.
 */
import * as Style from "./style.ts"

const escape = "\u001b"
const pasteStart = `${escape}[200~`
const pasteEnd = `${escape}[201~`
const interrupt = "\u0003"
const suspend = "\u001a"

// Those that mean the same wherever the person is.
const special = new RegExp(`([\\r\\n${interrupt}${suspend}])`)

// Arrows and the like.
const sequences = new RegExp(`${escape}(?:\\[[0-?]*[ -/]*[@-~]|O.|.)?`, "g")

/** Stands for a line break within a line. */
export const lineBreak = "⏎"

/** Tells the terminal to mark what is pasted. */
export const markPastes = `${escape}[?2004h`
export const doNotMarkPastes = `${escape}[?2004l`

export interface Listener {
  /** Takes keys while a line is being asked for, up to the end of the line. */
  readonly keys: (keys: string) => void
  readonly interrupt: () => void
  readonly suspend: () => void
}

export class Keyboard {
  /** Whether a line is being asked for. */
  isAsked = false
  private readonly listener: Listener
  private isPasting = false
  private carry = ""
  private ahead = ""

  constructor(listener: Listener) {
    this.listener = listener
  }

  /** What was typed while nobody asked. */
  get typed(): string {
    return this.ahead
  }

  takeTyped(): string {
    const typed = this.ahead
    this.ahead = ""
    return trimBreaks(typed)
  }

  /** Hears what came from the terminal. */
  hear(data: string): void {
    let rest = this.carry + data
    this.carry = ""
    while (rest !== "") {
      const marker = this.isPasting ? pasteEnd : pasteStart
      const index = rest.indexOf(marker)
      if (index < 0) {
        const torn = beginningOf(marker, rest)
        this.carry = rest.slice(rest.length - torn)
        const whole = rest.slice(0, rest.length - torn)
        if (whole !== "") this.take(whole)
        return
      }
      if (index > 0) this.take(rest.slice(0, index))
      this.isPasting = !this.isPasting
      rest = rest.slice(index + marker.length)
    }
  }

  private take(keys: string): void {
    if (this.isPasting) return this.paste(keys)
    for (const key of keys.split(special)) {
      if (key === "") continue
      if (key === interrupt) this.listener.interrupt()
      else if (key === suspend) this.listener.suspend()
      else if (this.isAsked) this.listener.keys(key)
      else this.typeAhead(key)
    }
  }

  /** Pasted lines are one line, or each would be sent on its own. */
  private paste(text: string): void {
    const line = Style.clean(text).replaceAll("\n", lineBreak)
    if (this.isAsked) this.listener.keys(line)
    else this.ahead += line
  }

  private typeAhead(keys: string): void {
    for (const key of keys.replace(sequences, "")) {
      if (key === "\r" || key === "\n") this.ahead += lineBreak
      else if (key === "\u007f" || key === "\b") this.ahead = [...this.ahead].slice(0, -1).join("")
      else if (key === "\u0015") this.ahead = ""
      else if (key === "\u0017") this.ahead = this.ahead.replace(/\S*\s*$/, "")
      else if (key >= " ") this.ahead += key
    }
  }
}

const trimBreaks = (text: string): string => text.replace(/^[⏎\s]+|[⏎\s]+$/gu, "")

/** How many characters at the end of a text may be the beginning of the marker. A lone escape is a key. */
const beginningOf = (marker: string, text: string): number => {
  for (let length = Math.min(marker.length - 1, text.length); length > 1; length--) {
    if (marker.startsWith(text.slice(text.length - length))) return length
  }
  return 0
}
