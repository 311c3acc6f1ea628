"""A training that has used up its descriptors after its run was opened."""

import unittest

from product import ProductTest


class WithoutDescriptorsTest(ProductTest):
    def test_what_steps_use_first_needs_none(self):
        out, err = self.run_trial("""
            import os, resource, stepwell
            run = stepwell.init()
            used, (_, most) = [], resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
            try:
                while True: used.append(os.open("/dev/null", os.O_RDONLY))
            except OSError: pass
            def twice(value): return 2 * value
            def in_device_scope():
                with run.device_scope("on device"): pass
            tried = {
                "device_scope": in_device_scope,
                "epoch": lambda: [batch for _, batch in run.steps([1, 2], epoch=3)],
                "decorated": lambda: run.scope("decorated")(twice)(2),
                "decorated on the device": lambda: run.device_scope("of device")(twice)(3),
            }
            for name, call in tried.items():
                try: print(name, call())
                except OSError as error: print(name, error)
            for one in used: os.close(one)
            """)
        self.assertEqual("device_scope None\nepoch [1, 2]\ndecorated 4\ndecorated on the device 6\n", out, err)
        self.await_counts({"step": 2, "dataloader_next": 3, "epoch": 1, "on device": 1, "decorated": 1, "of device": 1})

    def test_a_schedule_is_followed_without(self):
        out, err = self.run_trial("""
            import os, resource, stepwell
            run = stepwell.init(schedule=lambda place: False)
            used, (_, most) = [], resource.getrlimit(resource.RLIMIT_NOFILE)
            resource.setrlimit(resource.RLIMIT_NOFILE, (64, most))
            try:
                while True: used.append(os.open("/dev/null", os.O_RDONLY))
            except OSError: pass
            try: print([index for index, _ in run.steps("abc")])
            except OSError as error: print(error)
            for one in used: os.close(one)
            """)
        self.assertEqual("[0, 1, 2]\n", out, err)


if __name__ == "__main__":
    unittest.main()
