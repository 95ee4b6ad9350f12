import { groupOf, openConsumerService } from '../consumer-process.ts';
import type { Bench } from '../figure.ts';
import { openGateway, type Server } from '../gateway-servers.ts';
import type { Measured } from '../processes.ts';
import { openWriter } from '../writer-process.ts';

/** All services that an erasure involves, as they are deployed. */
export interface Stack {
  /** The gateway. */
  readonly server: Server;
  /**
   * Runs an eraser for the duration of a piece of work. Five minutes after its start an eraser would scrub and rewrite
   * files, which is measured separately.
   */
  withEraser<T>(work: () => Promise<T>): Promise<T>;
  close(): Promise<void>;
}

export async function openStack(bench: Bench): Promise<Stack> {
  const opened: Measured[] = [];
  const use = async <T extends Measured>(opening: Promise<T>): Promise<T> => {
    const process = await opening;
    opened.push(process);
    return process;
  };
  const close = async () => {
    for (const process of opened.toReversed()) await process.close();
  };
  const groups = { LINKER_GROUP: groupOf(bench, 'identity-linker'), WRITER_GROUP: groupOf(bench, 'event-writer') };
  const withEraser = async <T>(work: () => Promise<T>) => {
    const eraser = await openConsumerService(bench, 'eraser', groups);
    return work().finally(() => eraser.close());
  };
  try {
    await use(openWriter(bench));
    await use(openConsumerService(bench, 'identity-linker'));
    return { server: await use(openGateway(bench)), withEraser, close };
  } catch (error) {
    await close();
    throw error;
  }
}
