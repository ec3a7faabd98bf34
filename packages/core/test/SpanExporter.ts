import { type Exit, Option, Tracer } from "effect"

/** What an exporter gets of a span. */
export interface Exported {
  readonly name: string
  readonly id: string
  readonly parent: string | undefined
  readonly attributes: Record<string, unknown>
  readonly events: Array<unknown>
  readonly exit: Exit.Exit<unknown, unknown>
  readonly millis: number
}

/** A tracer that keeps the spans that ended. */
export const exporter = () => {
  const ended: Array<Exported> = []
  let started = 0
  const tracer = Tracer.make({
    span: (name, parent, context, links, startTime, kind) => {
      const id = String(started++)
      const attributes = new Map<string, unknown>()
      const events: Array<unknown> = []
      return {
        _tag: "Span",
        name,
        spanId: id,
        traceId: "trace",
        parent,
        context,
        status: { _tag: "Started", startTime },
        attributes,
        links,
        sampled: true,
        kind,
        attribute: (key, value) => attributes.set(key, value),
        event: (event, _time, more) => events.push([event, more]),
        addLinks: () => {},
        end: (endTime, exit) =>
          ended.push({
            name,
            id,
            parent: Option.getOrUndefined(parent)?.spanId,
            attributes: Object.fromEntries(attributes),
            events,
            exit,
            millis: Number(endTime - startTime) / 1_000_000
          })
      } as Tracer.Span
    },
    context: (run) => run()
  })
  return { ended, tracer, started: () => started }
}

/** Indented lines, in the order the spans began. */
export const treeOf = (spans: ReadonlyArray<Exported>, parent?: string, depth = 0): ReadonlyArray<string> =>
  spans
    .filter((span) => span.parent === parent)
    .sort((a, b) => Number(a.id) - Number(b.id))
    .flatMap((span) => {
      const tool = span.attributes["gen_ai.tool.call.id"]
      return [
        "  ".repeat(depth) + span.name + (tool === undefined ? "" : ` ${tool}`),
        ...treeOf(spans, span.id, depth + 1)
      ]
    })

export const named = (spans: ReadonlyArray<Exported>, name: string) => spans.filter((span) => span.name === name)
