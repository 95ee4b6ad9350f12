/**
 * The event writer without intents, as the control of the kill tests. It stores rows twice, which proves that the tests
 * would notice. Nothing else differs, now or later: it runs main.ts itself, with another consumer under the name of the
 * adapter.
 */
import { registerHooks } from 'node:module';

const MAIN = new URL('../../services/event-writer/src/main.ts', import.meta.url).href;
const LOG_WITHOUT_INTENTS = new URL('./log-without-intents.ts', import.meta.url).href;

registerHooks({
  resolve: (specifier, context, next) =>
    specifier === '@playline/stream/kafka' && context.parentURL === MAIN
      ? { url: LOG_WITHOUT_INTENTS, shortCircuit: true }
      : next(specifier, context),
});
await import('../../services/event-writer/src/main.ts');
