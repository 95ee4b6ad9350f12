import assert from 'node:assert/strict';
import { setTimeout as delay } from 'node:timers/promises';
import { countRecords } from '../world/end-check.ts';
import type { Attempt } from '../world/post.ts';
import type { Scenario } from '../world/trial.ts';
import { waitFor } from '../world/wait.ts';

export const gatewayKilledBeforeAnswer: Scenario = {
  fault: 2,
  title: 'every message is one row when its gateway is killed before the broker’s answer, and the client resends',
  tried: 'gateway SIGKILL between acknowledgement and answer',
  run: async (trial) => {
    const { world, random, ledger } = trial;
    const gateway = await trial.start('gateway');
    const before = trial.openTraffic([gateway]);
    await before.flows(random.integer(1, 10));
    await before.close();

    const [recordsBefore, acknowledged, sent] = [await countRecords(world), ledger.acknowledged, ledger.sent];
    // From now on the broker's answers are lost: the batches are stored, but the gateway does not know.
    await world.wires.kafka.set('hold-answers');
    const successor = await trial.launch('gateway');
    const traffic = trial.openTraffic([gateway], { clients: random.integer(1, 12) });
    await waitFor('the broker has stored a batch', async () => (await countRecords(world)) > recordsBefore);
    await delay(random.integer(0, 300));
    gateway.signal('SIGKILL');
    await gateway.exited;
    assert.equal(ledger.acknowledged, acknowledged, 'nothing was answered before the gateway was killed');
    traffic.redirect([successor]);
    await world.wires.kafka.set('open');
    await traffic.flows(5);
    await traffic.close();
    const copies = (await countRecords(world)) - recordsBefore - (ledger.sent - sent);
    assert.ok(copies > 0, 'clients sent again what the broker had stored, else nothing was tried');
    return { kills: 1, 'records stored and not answered': copies };
  },
};

export const gatewayKilledUnderLoad: Scenario = {
  fault: 2,
  title: 'gateways are killed under load: every batch that was answered with 200 is stored, each message once',
  tried: 'gateway SIGKILL at random moments, client resends',
  run: async (trial) => {
    const { random, ledger } = trial;
    const other = await trial.start('gateway');
    let victim = await trial.start('gateway');
    const traffic = trial.openTraffic([other, victim], { restMaxMs: 10 });
    const kills = random.integer(1, 3);
    for (let kill = 0; kill < kills; kill++) {
      await traffic.flows(random.integer(5, 40));
      await delay(random.integer(0, 50));
      victim.signal('SIGKILL');
      await victim.exited;
      victim = await trial.start('gateway');
      traffic.redirect([other, victim]);
    }
    await traffic.flows(10);
    await traffic.close();
    // After a kill the port refuses connections, so those requests reached no gateway.
    const isCutOff = ({ status, text }: Attempt) => status === 0 && !text.includes('ECONNREFUSED');
    return { kills, 'requests cut off': ledger.attempts.filter(isCutOff).length };
  },
};
