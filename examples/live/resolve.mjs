const core = new URL("./core.ts", import.meta.url).href

/** What the examples import as `@allm/core` is that, with another `Fake`. */
export function resolve(specifier, context, next) {
  return specifier === "@allm/core" && context.parentURL?.includes("/examples/src/")
    ? { url: core, format: "module", shortCircuit: true }
    : next(specifier, context)
}
