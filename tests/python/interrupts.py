"""Ctrl-C at each line of a trial, one after the other: text for the head of its source."""

# interrupt_each(live, is_ours): calls live() until an interrupt at none of its lines ended it. How many lines there are,
# and those whose interrupt it did not end with: somebody swallowed that. interrupt_twice() does so at the first two times
# that live() comes to a line by the same two calls, after(line) behind each; interrupt_some(), for
# some seconds, at lines of live(1000 * n + 500) drawn at random, and a whole one is the caller's, in after(n).
SOURCE = """
import sys
def place_of(frame):
    return f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno} {frame.f_code.co_name}"
def interrupt_each(live, is_ours, after=lambda line: None):
    line, swallowed = 0, []
    while True:
        line += 1
        left, place = line, None
        def trace(frame, event, arg):
            nonlocal left, place
            if event == "line" and is_ours(frame.f_code):
                left -= 1
                if left == 0:
                    place = place_of(frame)
                    raise KeyboardInterrupt
            return trace
        sys.settrace(trace)
        try: live()
        except KeyboardInterrupt: pass
        else:
            sys.settrace(None)
            if left > 0: return line - 1, swallowed
            swallowed.append(place)
        finally: sys.settrace(None)
        after(line)
def interrupt_twice(live, is_ours, after):
    done, swallowed = set(), []
    while True:
        seen, place = {}, None
        def trace(frame, event, arg):
            nonlocal place
            if not is_ours(frame.f_code): return None
            if event == "line" and place is None:
                callers = frame, frame.f_back, frame.f_back and frame.f_back.f_back
                here = tuple((one.f_code, one.f_lineno) for one in callers if one is not None)
                seen[here] = seen.get(here, 0) + 1
                if seen[here] <= 2 and (here, seen[here]) not in done:
                    done.add((here, seen[here]))
                    place = place_of(frame)
                    raise KeyboardInterrupt
            return trace
        sys.settrace(trace)
        try: live()
        except KeyboardInterrupt: pass
        else:
            sys.settrace(None)
            if place is None: return len(done), swallowed
            swallowed.append(place)
        finally: sys.settrace(None)
        after(len(done))
def is_in_del(frame):     # of theirs, whose interrupts Python swallows
    while frame is not None and frame.f_code.co_name != "__del__": frame = frame.f_back
    return frame is not None
def interrupt_some(live, is_ours, before, after, seed, seconds):
    import random, time
    def lines_of(call, wanted=None, count=0):
        seen, is_raised = {}, False
        def trace(frame, event, arg):
            nonlocal is_raised
            if not is_ours(frame.f_code): return None
            if event == "line":
                here = (frame.f_code.co_filename, frame.f_lineno, frame.f_code.co_name)
                seen[here] = seen.get(here, 0) + 1
                if here == wanted and seen[here] == count and not is_in_del(frame):
                    is_raised = True
                    raise KeyboardInterrupt
            return trace
        sys.settrace(trace)
        try: call()
        except (KeyboardInterrupt, SystemExit): return "passed"     # Lightning makes the other of the one
        except Exception as error:      # theirs, of what they do about it
            last = error.__traceback__
            while last.tb_next is not None: last = last.tb_next
            if not is_raised or is_ours(last.tb_frame.f_code): raise
            return f"passed as {type(error).__name__}"
        finally: sys.settrace(None)
        return "swallowed" if is_raised else seen
    before(0)
    seen = lines_of(lambda: live(500))
    after(0)
    chance, places, number, found, begin = random.Random(seed), sorted(seen), 0, [], time.monotonic()
    while time.monotonic() - begin < seconds:
        number += 1
        # A line of a begin or an end is as likely as one of each step's, half of the time.
        weights = [seen[place] for place in places] if chance.random() < 0.5 else None
        place = chance.choices(places, weights)[0]
        count = chance.randint(1, seen[place])
        before(number)
        came = lines_of(lambda: live(1000 * number + 500), place, count)
        file, line, name = place
        found.append([f"{file.rpartition('/stepwell/')[2]}:{line} {name} #{count}", came if isinstance(came, str) else "not reached"])
        after(number)
    return sum(seen.values()), found
"""
