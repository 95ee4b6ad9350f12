// Runs the quick end-to-end test on a cluster: several nodes of each store and two processes of each service.
import { describe } from 'vitest';
import { useCluster } from './stack.ts';

useCluster();

describe('a cluster', async () => void (await import('./whole-stack.test.ts')));
