import { provideEngine } from './engine.ts';
import { provideImages } from './substitutes.ts';

/** Provides an engine and images for `npm run test:containers`. Stops the engine after the run if it was started. */
export default async function setup(): Promise<() => Promise<void>> {
  const stop = await provideEngine(console.error);
  try {
    await provideImages(console.error);
    return stop;
  } catch (error) {
    await stop();
    throw error;
  }
}
