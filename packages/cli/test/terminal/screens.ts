/** What the screens of a chat have in common. */
import type { Terminal } from "./Terminal.ts"

/** The prompt is there, and waits. */
export const ready = (terminal: Terminal): boolean => terminal.cursor().visible && /(^|\n)›$/.test(terminal.screen())

/** The prompt is there again, below something else. */
export const readyAfter = (text: string | RegExp) => (terminal: Terminal): boolean => {
  const screen = terminal.screen()
  return ready(terminal) && (typeof text === "string" ? screen.includes(text) : text.test(screen))
}

export const spinner: RegExp = /[⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏]/u

/** The id of the session that a screen names. */
export const sessionIn = (screen: string): string => {
  const [, id] = /session (\d{8}-\d{6}-\w{4})/.exec(screen) ?? []
  if (id === undefined) throw new Error(`No session in\n${screen}`)
  return id
}

/** The rows of a screen that show a call of a tool. */
export const rowsOf = (screen: string, tool: string): ReadonlyArray<string> =>
  screen.split("\n").filter((row) => new RegExp(`^ ?\\S (\\S+( \\S+)? +)?${tool}\\b`).test(row))
