// The floor: parse, run everything at once, print. No limit, no timeout, no validation, and the first failure is the end.
import { summarize } from "../lib/work.mjs"

export const create = ({ echo }) => {
  const runCall = async ({ id, rawArguments }) => {
    const value = await echo(JSON.parse(rawArguments))
    return { role: "tool", toolCallId: id, content: JSON.stringify(value), isError: false }
  }

  return {
    run: async (calls) => summarize(await Promise.all(calls.map(runCall)))
  }
}
