"""Ctrl-C at each line of a trial, one after the other: text for the head of its source."""

# interrupt_each(live, is_ours): calls live() until an interrupt at none of its lines ended it. How many lines there are,
# and those whose interrupt it did not end with: somebody swallowed that.
SOURCE = """
import sys
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
                    place = f"{frame.f_code.co_filename.rpartition('/')[2]}:{frame.f_lineno} {frame.f_code.co_name}"
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
"""
