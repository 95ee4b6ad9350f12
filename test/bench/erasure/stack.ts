import { groupOf, openConsumerService } from '../consumer-process.ts';
import type { Bench } from '../figure.ts';
import { openGateway, type Server } from '../gateway-servers.ts';
import type { Measured } from '../processes.ts';
import { openWriter } from '../writer-process.ts';

/** Everything that an erasure goes through, as it is deployed. */
export interface Stack {
  /** What the world talks to. */
  readonly server: Server;
  /** Apart from the others: five minutes after its start an eraser looks after all that was ever erased. */
  startEraser(): Promise<void>;
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
  try {
    await use(openWriter(bench));
    await use(openConsumerService(bench, 'identity-linker'));
    return {
      server: await use(openGateway(bench)),
      startEraser: async () => void (await use(openConsumerService(bench, 'eraser', groups))),
      close,
    };
  } catch (error) {
    await close();
    throw error;
  }
}
