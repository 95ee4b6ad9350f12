/** An event writer without intents, which stores rows twice. The kill tests use it as a control, which must fail. */
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
