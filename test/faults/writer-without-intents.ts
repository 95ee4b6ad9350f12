/**
 * The event writer as its main.ts makes it, but without intents: the control of the kill tests. It doubles rows, which
 * shows that they would see it. Nothing else differs, and nothing can come to differ: it runs that very file, which
 * finds another consumer behind the name of the adapter.
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
