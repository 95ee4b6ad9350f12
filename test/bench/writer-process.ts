import { openConsumerService } from './consumer-process.ts';
import type { Bench } from './figure.ts';
import type { Measured } from './processes.ts';

/** The event writer as it is deployed. */
export const openWriter = (bench: Bench): Promise<Measured> => openConsumerService(bench, 'event-writer');
