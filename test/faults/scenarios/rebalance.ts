import { setTimeout as delay } from 'node:timers/promises';
import { tally } from '../world/reached.ts';
import type { ServiceName, ServiceProcess } from '../world/service-process.ts';
import type { Scenario } from '../world/trial.ts';

export const partitionsMove: Scenario = {
  fault: 11,
  title: 'every record is one row when linkers and writers come and go under load, with two gateways',
  tried: 'writers and linkers join, leave by SIGTERM and by SIGKILL',
  crew: { linkers: 2, writers: 2 },
  run: async (trial) => {
    const { random } = trial;
    const gateways = [await trial.start('gateway'), await trial.start('gateway')];
    const running = [...trial.crew];
    const traffic = trial.openTraffic(gateways, { restMaxMs: 15 });
    const moves: string[] = [];
    const leave = async (leaving: ServiceProcess) => {
      running.splice(running.indexOf(leaving), 1);
      const signal = random.pick(['SIGTERM', 'SIGKILL'] as const);
      moves.push(signal);
      leaving.signal(signal);
      // The leaving process may still drain while the next one starts, as in a deployment.
      if (random.chance(0.5)) await leaving.exited;
    };
    for (let move = random.integer(3, 5); move > 0; move--) {
      await traffic.flows(random.integer(5, 25));
      await delay(random.integer(0, 400));
      const service: ServiceName = random.pick(['identity-linker', 'event-writer']);
      const own = running.filter((child) => child.service === service);
      // One of each service must stay, so that work continues while partitions move.
      const joins = own.length <= 1 || (own.length < 3 && random.chance(0.5));
      if (!joins) await leave(random.pick(own));
      else {
        moves.push('joined');
        running.push(await trial.launch(service));
      }
    }
    // The last processes join before the traffic ends, so every rebalance happens under load.
    await Promise.all(running.map((child) => child.whenReady()));
    await traffic.flows(10);
    await traffic.close();
    return tally(moves);
  },
};
